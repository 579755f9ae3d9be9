/* SPDX-License-Identifier: MIT */

/* Keeps jobs that arrive while a handler waits for a future. */

#include "shared/base/cleanup.h"
#include "worker/worker/worker.h"
#include <string.h>

struct backlog_job {
    struct list link;
    struct ring_record record;
    int blob; /* the argument of job_handle() */
    _Alignas(8) char body[];
};

static void free_job(struct backlog_job *job)
{
    list_unlink(&job->link);
    close_fd(job->blob);
    free(job);
}

int backlog_keep(struct troupe_worker *worker, const struct ring_record *record)
{
    struct protocol_job wire;
    struct backlog_job *job;
    int r = 0;

    if (protocol_get_job(record->body, record->size, &wire) < 0)
        return -EPROTO;
    job = malloc(sizeof(*job) + record->size);
    if (!job)
        return -ENOMEM;
    memcpy(job->body, record->body, record->size);
    job->record = (struct ring_record){.body = job->body, .size = record->size};
    job->blob = -1;
    list_init(&job->link);
    if (wire.payload.form == PAYLOAD_BLOB)
        r = payload_receive_fd(worker->carrier.control, wire.payload.serial, payload_drop_fd,
                               &job->blob);
    if (r == -EMFILE) /* it is lost */
        job->blob = r;
    else if (r < 0) {
        free_job(job);
        return r;
    }
    list_push_back(&worker->backlog, &job->link);
    return 0;
}

int backlog_run(struct troupe_worker *worker)
{
    struct backlog_job *job;
    int r;

    if (list_empty(&worker->backlog))
        return 0;
    job = list_entry(list_first(&worker->backlog), struct backlog_job, link);
    list_unlink(&job->link);
    r = job_handle(worker, &job->record, TAKE_FD(job->blob));
    free_job(job);
    return r < 0 ? r : 1;
}

void backlog_deinit(struct troupe_worker *worker)
{
    list_for_each_safe (node, &worker->backlog)
        free_job(list_entry(node, struct backlog_job, link));
}

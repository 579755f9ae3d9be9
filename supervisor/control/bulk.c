/* SPDX-License-Identifier: MIT */
#include "supervisor/control/bulk.h"

#include "supervisor/control/control-context.h"
#include "supervisor/group/cell/refusal.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/job/job.h"
#include "supervisor/message/message-context.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bulk_write {
    struct list link;  /* in the bulk's list */
    struct bulk *bulk; /* NULL = the call has ended */
    struct control_context *context;
    struct dead_letter *letter;
};

void bulk_init(struct bulk *bulk, struct request *request)
{
    bulk->context = request->context;
    list_init(&bulk->writes);
}

void bulk_deinit(struct bulk *bulk)
{
    list_for_each_safe (node, &bulk->writes) {
        list_unlink(node);
        list_entry(node, struct bulk_write, link)->bulk = NULL;
    }
}

void bulk_fail_because(struct bulk *bulk, const char *problem)
{
    bulk->n_failed++;
    (void)snprintf(bulk->problem, sizeof(bulk->problem), "%s", problem);
}

void bulk_fail(struct bulk *bulk, int error)
{
    const struct refusal *refusal = refusal_of(error);

    bulk_fail_because(bulk, refusal ? refusal->text : strerrordesc_np(-error));
}

struct bulk_write *bulk_write_new(struct bulk *bulk, struct dead_letter *letter)
{
    struct bulk_write *write = malloc(sizeof(*write));

    if (!write)
        return NULL;
    *write = (struct bulk_write){.bulk = bulk, .context = bulk->context, .letter = letter};
    list_init(&write->link);
    list_push_back(&bulk->writes, &write->link);
    bulk->n_writes++;
    return write;
}

void bulk_write_free(struct bulk_write *write)
{
    if (!write)
        return;
    if (write->bulk)
        write->bulk->n_writes--;
    list_unlink(&write->link);
    free(write);
}

static void end_letter(struct bulk_write *write, bool replaced)
{
    if (!replaced) {
        dead_letter_put(&write->context->messages->dead_letters, write->letter);
        return;
    }
    write->letter->row = 0; /* removed in the transaction that wrote the job */
    dead_letter_free(write->letter);
}

void bulk_on_written(struct job_waiter *waiter, struct job *job)
{
    struct bulk_write *write = waiter->owner;
    struct bulk *bulk = write->bulk;

    job_waiter_free(write->context->jobs, waiter);
    if (write->letter)
        end_letter(write, job->refusal == 0);
    if (bulk && job->refusal != 0)
        bulk_fail(bulk, job->refusal);
    else if (bulk && (!bulk->cancels || !job_ended(job) || job->state == JOB_CANCELLED))
        bulk->n_done++;
    bulk_write_free(write);
    if (bulk && bulk->n_writes == 0 && bulk->parts.waits)
        request_parts_resume(&bulk->parts);
}

void bulk_report(const struct bulk *bulk, struct reply *reply, const char *key)
{
    reply_uint(reply, key, bulk->n_done);
    reply_uint(reply, "failed", bulk->n_failed);
    reply_string_if(reply, "problem", bulk->problem);
}

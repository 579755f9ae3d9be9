/* SPDX-License-Identifier: MIT */
#include "supervisor/store/inherited-jobs.h"

#include "shared/base/log.h"
#include "supervisor/job/job-save.h"
#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct inherited_job {
    struct index_entry by_number;
    struct list link;
    bool stays; /* its job is on disk */
    size_t size;
    uint8_t fields[];
};

void inherited_jobs_init(struct inherited_jobs *inherited)
{
    *inherited = (struct inherited_jobs){.by_number = INDEX_NULL};
    list_init(&inherited->all);
}

static void forget(struct inherited_jobs *inherited, struct inherited_job *entry)
{
    index_remove(&inherited->by_number, &entry->by_number);
    list_unlink(&entry->link);
    free(entry);
}

void inherited_jobs_settle(struct inherited_jobs *inherited)
{
    list_for_each_safe (node, &inherited->all) {
        struct inherited_job *entry = list_entry(node, struct inherited_job, link);

        if (!entry->stays)
            forget(inherited, entry);
    }
}

void inherited_jobs_deinit(struct inherited_jobs *inherited)
{
    list_for_each_safe (node, &inherited->all)
        forget(inherited, list_entry(node, struct inherited_job, link));
    index_deinit(&inherited->by_number);
}

static struct inherited_job *find(const struct inherited_jobs *inherited, int64_t number)
{
    struct index_entry *entry = index_find(&inherited->by_number, (uint64_t)number);

    return entry ? list_entry(entry, struct inherited_job, by_number) : NULL;
}

void inherited_jobs_keep(struct inherited_jobs *inherited, int64_t number)
{
    struct inherited_job *entry = find(inherited, number);

    if (entry)
        entry->stays = true;
}

/* ---- saving ---- */

/* The fields of the job are one field, which is kept as it is. */
int inherited_job_save(const struct job *job, struct saver *saver)
{
    struct saved_writer row = {0};
    size_t fields;

    if (job_is_plain(job))
        return 0;
    saved_put_number(&row, (uint64_t)durable_job_number(job));
    fields = saved_begin(&row);
    job_put(&row, job);
    saved_end(&row, fields);
    return saved_add(saver, INHERITED_JOB_ROW, &row, NULL);
}

int inherited_jobs_save(const struct inherited_jobs *inherited, struct saver *saver)
{
    int r = 0;

    list_for_each (node, &inherited->all) {
        const struct inherited_job *entry = list_entry(node, struct inherited_job, link);
        struct saved_writer row = {0};

        saved_put_number(&row, entry->by_number.key);
        saved_put_bytes(&row, entry->fields, entry->size);
        r = saved_add(saver, INHERITED_JOB_ROW, &row, NULL);
        if (r < 0)
            break;
    }
    return r;
}

/* ---- restoring ---- */

int inherited_job_restore_row(struct inherited_jobs *inherited, struct saved_reader *row)
{
    const int64_t number = (int64_t)saved_get_number(row);
    size_t size;
    const void *fields = saved_get_bytes(row, &size);
    struct inherited_job *entry;

    if (row->damaged || find(inherited, number))
        return -EBADMSG;
    entry = malloc(sizeof(*entry) + size);
    if (!entry)
        return -ENOMEM;
    entry->stays = false;
    entry->size = size;
    memcpy(entry->fields, fields, size);
    list_init(&entry->link);
    list_push_back(&inherited->all, &entry->link);
    index_add(&inherited->by_number, &entry->by_number, (uint64_t)number);
    return 0;
}

void inherited_jobs_give(struct inherited_jobs *inherited, struct job *job, int64_t number)
{
    struct inherited_job *entry = find(inherited, number);
    struct saved_reader row;

    if (!entry)
        return;
    row = (struct saved_reader){.at = entry->fields, .end = entry->fields + entry->size};
    if (job_get(&row, job) < 0)
        log_error("how attempts of durable job %" PRId64 " failed is lost in the upgrade: its row "
                  "is damaged",
                  number);
    forget(inherited, entry);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/upgrade/save.h"

#include "supervisor/client/attachment-save.h"
#include "supervisor/event/death-save.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group-save.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/restore.h"
#include "supervisor/job/job-save.h"
#include "supervisor/message/actor-name-save.h"
#include "supervisor/message/actor-save.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/ask/ask-save.h"
#include "supervisor/message/dead-letter/dead-letter-save.h"
#include "supervisor/message/delivery/delivery-save.h"
#include "supervisor/message/exchange/exchange-save.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/monitor-save.h"
#include "supervisor/message/schedule/schedule-save.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/identity-rows.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/store/saved-rows.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct save {
    struct saver saver; /* of rows */
    struct database database;
    struct saved_rows rows;
    int64_t number; /* of the last kept result's row */
};

static int add_row(struct saver *saver, const char *kind, const struct saved_writer *row,
                   const struct payload *payload)
{
    return saved_rows_add(&list_entry(saver, struct save, saver)->rows, kind, row, payload);
}

/* Returns 0 or -errno. */
static int save_identity(struct save *save, const struct job *job)
{
    const struct identity_row row = {
        .number = save->number,
        .handle = job->handle,
        .high = job->id_high,
        .low = job->id_low,
    };

    return identity_rows_add(&save->database, &row);
}

/* What its other row does not have. */
static int save_rest(struct save *save, const struct job *job)
{
    int r = save_identity(save, job);

    return r == 0 ? job_save(job, &save->saver) : r;
}

static int save_job(struct save *save, const struct job *job)
{
    struct job_row row = JOB_ROW_NULL;
    struct saved_writer fields = {0};
    int r;

    if (job->record && job->state != JOB_RUNNING)
        return inherited_job_save(job, &save->saver);
    if (job->record || job->restored) /* only its worker knows one that has outlived a crash */
        return job_save(job, &save->saver);
    job_to_row(&row, job, job->group->name);
    job_progress_to_row(&row, job);
    identity_put(&fields, job);
    job_row_put(&fields, &row);
    r = saved_add(&save->saver, WHOLE_JOB_ROW, &fields, &job->payload);
    return r == 0 ? job_save(job, &save->saver) : r;
}

static int save_list(struct save *save, const struct list *jobs)
{
    int r = 0;

    list_for_each (node, jobs) {
        r = save_job(save, list_entry(node, struct job, link));
        if (r < 0)
            break;
    }
    return r;
}

/* In the order in which they are handed out: those that a worker has not seen yet come first. */
static int save_cell(struct save *save, const struct cell *cell)
{
    struct slot *slot;
    size_t cursor = 0;
    int r = 0;

    while (r == 0 && (slot = pool_next_slot(&cell->pool, &cursor)))
        r = save_list(save, &slot->jobs);
    for (unsigned i = 0; r == 0 && i < QUEUE_PRIORITIES; i++)
        r = save_list(save, &cell->queue.bands[i]);
    return r == 0 ? save_list(save, &cell->backoff) : r;
}

static int save_result(struct save *save, const struct group *group, const struct job *job)
{
    struct ended_row row = ENDED_ROW_NULL;
    int r;

    if (job->record)
        return inherited_job_save(job, &save->saver);
    job_result_to_row(&row, job, job->state);
    row.number = ++save->number;
    row.group = group->name;
    row.group_size = (uint32_t)strlen(group->name);
    row.key = job->key;
    row.key_size = job->key_size;
    row.name = job->name;
    row.name_size = job->name ? (uint32_t)strlen(job->name) : 0;
    r = ended_rows_put(&save->database, &row);
    return r == 0 ? save_rest(save, job) : r;
}

static int save_group(struct save *save, const struct group *group)
{
    int r = 0;

    list_for_each (node, &group->results.jobs) {
        r = save_result(save, group, list_entry(node, struct kept_result, link)->job);
        if (r < 0)
            return r;
    }
    group_each_cell (cell, group) {
        r = save_cell(save, cell);
        if (r < 0)
            return r;
    }
    return 0;
}

static int save_groups(struct save *save, const struct registry *registry)
{
    struct group *group;
    size_t cursor = 0;
    int r = 0;

    while (r == 0 && (group = registry_next(registry, &cursor)))
        r = save_group(save, group);
    return r;
}

/* Publishes messages that were written to actors: they count as sent. */
static void flush_actors(const struct message_context *context)
{
    const struct actor *actor;
    size_t cursor = 0;

    while ((actor = actor_next(&context->actors, &cursor)))
        if (actor->inbox.endpoint)
            endpoint_flush(actor->inbox.endpoint);
}

static int save_messages(const struct message_context *context, struct saver *saver)
{
    int r = actors_save(context, saver);

    if (r == 0)
        r = exchanges_save(context, saver);
    if (r == 0)
        r = actor_names_save(context, saver);
    if (r == 0)
        r = monitors_save(context, saver);
    if (r == 0)
        r = asks_save(context, saver);
    if (r == 0)
        r = schedules_save(context, saver);
    return r == 0 ? deliveries_save(context, saver) : r;
}

static int save_all(struct save *save, const struct group_context *context)
{
    int r;

    flush_actors(context->messages);

    database_begin(&save->database);
    r = identity_rows_create(&save->database);
    if (r == 0)
        r = saved_rows_create(&save->database);
    if (r == 0)
        r = save_groups(save, context->registry);
    if (r == 0)
        r = inherited_jobs_save(&context->durable->inherited, &save->saver);
    if (r == 0)
        r = death_log_save(context->deaths, &save->saver);
    if (r == 0)
        r = dead_letters_save(&context->messages->dead_letters, &save->saver);
    if (r == 0)
        r = groups_save(context, &save->saver);
    if (r == 0)
        r = store_tally_save(context->durable->store, &save->saver);
    if (r == 0)
        r = save_messages(context->messages, &save->saver);
    if (r == 0)
        r = attachments_save(context, &save->saver);
    if (r == 0)
        r = saved_rows_flush(&save->rows);
    return r == 0 ? database_commit(&save->database) : r;
}

/* The file has its name once it is complete. */
int save(const char *path, const struct group_context *context,
         char ret_problem[DATABASE_PROBLEM_MAX])
{
    struct save save = {.saver.add = add_row, .database = DATABASE_NULL};
    char unfinished[PATH_MAX];
    int r;

    if (snprintf(unfinished, sizeof(unfinished), "%s.new", path) >= (int)sizeof(unfinished))
        return -ENAMETOOLONG;
    r = database_open_unsynced(&save.database, unfinished, true);
    save.rows.database = &save.database;
    if (r == 0)
        r = save_all(&save, context);
    saved_rows_deinit(&save.rows);
    (void)snprintf(ret_problem, DATABASE_PROBLEM_MAX, "%s", save.database.problem);
    database_close(&save.database, r < 0);
    if (r == 0 && rename(unfinished, path) < 0)
        r = -errno;
    if (r < 0)
        (void)unlink(unfinished);
    else
        attachments_drop_saved(context);
    if (r < 0 && *ret_problem == '\0')
        (void)snprintf(ret_problem, DATABASE_PROBLEM_MAX, "%s: %s", path, strerror(-r));
    return r;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/upgrade/save.h"

#include "supervisor/client/attachment-save.h"
#include "supervisor/event/death.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group-save.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/restore.h"
#include "supervisor/message/actor-end.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/dead-letter/dead-letter-save.h"
#include "supervisor/message/message-context.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/store/saved-rows.h"
#include "supervisor/upgrade/kinds.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct save {
    struct saver saver; /* of rows */
    struct database database;
    struct saved_rows rows;
};

static int add_row(struct saver *saver, const char *kind, const struct saved_writer *row,
                   const struct payload *payload)
{
    return saved_rows_add(&list_entry(saver, struct save, saver)->rows, kind, row, payload);
}

/* Whether the row in the database of a durable job lacks something. Its worker's inbox has all of a
 * job in hand but its attempts. */
static bool is_to_be_saved(const struct job *job)
{
    if (!job->record || job->n_attempts > 0)
        return true;
    return job->state != JOB_RUNNING && (job->n_unbegun > 0 || job->put_off);
}

static int save_job(struct save *save, const struct job *job)
{
    struct saved_job saved;
    const struct payload *payload = NULL;

    if (!is_to_be_saved(job))
        return 0;
    saved_job_fill(&saved, job, job->group->name);
    if (job->record)
        saved.row.number = durable_job_number(job);
    else if (!job->payload_lost)
        payload = &job->payload; /* or its result */
    return record_save(&save->saver, &SAVED_JOB_RECORD, &saved, payload);
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

static int save_group(struct save *save, const struct group *group)
{
    int r = 0;

    list_for_each (node, &group->results.jobs) {
        r = save_job(save, list_entry(node, struct kept_result, link)->job);
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

static int save_all(struct save *save, const struct group_context *context)
{
    int r;

    flush_actors(context->messages);

    database_begin(&save->database);
    r = saved_rows_create(&save->database);
    if (r == 0)
        r = save_groups(save, context->registry);
    if (r == 0)
        r = waiting_room_save(context->durable->inherited, &save->saver);
    if (r == 0)
        r = death_log_save(context->deaths, &save->saver);
    if (r == 0)
        r = dead_letters_save(&context->messages->dead_letters, &save->saver);
    if (r == 0)
        r = groups_save(context, &save->saver);
    if (r == 0)
        r = store_tally_save(context->durable->store, &save->saver);
    if (r == 0)
        r = upgrade_save_actors(context->messages, &save->saver);
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
    actor_ends_settle(context->messages);
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

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
#include "supervisor/upgrade/kinds.h"
#include "supervisor/upgrade/saved-file.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Whether the row in the database of a durable job lacks something. Its worker's inbox has all of a
 * job in hand but its attempts. */
static bool is_to_be_saved(const struct job *job)
{
    if (!job->record || job->n_attempts > 0)
        return true;
    return job->state != JOB_RUNNING && (job->n_unbegun > 0 || job->put_off);
}

static int save_job(struct saver *saver, const struct job *job)
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
    return record_save(saver, &SAVED_JOB_RECORD, &saved, payload);
}

static int save_list(struct saver *saver, const struct list *jobs)
{
    int r = 0;

    list_for_each (node, jobs) {
        r = save_job(saver, list_entry(node, struct job, link));
        if (r < 0)
            break;
    }
    return r;
}

/* In the order in which they are handed out: those that a worker has not seen yet come first. */
static int save_cell(struct saver *saver, const struct cell *cell)
{
    struct slot *slot;
    size_t cursor = 0;
    int r = 0;

    while (r == 0 && (slot = pool_next_slot(&cell->pool, &cursor)))
        r = save_list(saver, &slot->jobs);
    for (unsigned i = 0; r == 0 && i < QUEUE_PRIORITIES; i++)
        r = save_list(saver, &cell->queue.bands[i]);
    return r == 0 ? save_list(saver, &cell->backoff) : r;
}

static int save_group(struct saver *saver, const struct group *group)
{
    int r = 0;

    list_for_each (node, &group->results.jobs) {
        r = save_job(saver, list_entry(node, struct kept_result, link)->job);
        if (r < 0)
            return r;
    }
    group_each_cell (cell, group) {
        r = save_cell(saver, cell);
        if (r < 0)
            return r;
    }
    return 0;
}

static int save_groups(struct saver *saver, const struct registry *registry)
{
    struct group *group;
    size_t cursor = 0;
    int r = 0;

    while (r == 0 && (group = registry_next(registry, &cursor)))
        r = save_group(saver, group);
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

static int save_all(struct saver *saver, const struct group_context *context)
{
    int r;

    flush_actors(context->messages);
    r = save_groups(saver, context->registry);
    if (r == 0)
        r = waiting_room_save(context->durable->inherited, saver);
    if (r == 0)
        r = death_log_save(context->deaths, saver);
    if (r == 0)
        r = dead_letters_save(&context->messages->dead_letters, saver);
    if (r == 0)
        r = groups_save(context, saver);
    if (r == 0)
        r = store_tally_save(context->durable->store, saver);
    return r == 0 ? upgrade_save_actors(context->messages, saver) : r;
}

/* The file has its name once it is complete. */
int save(const char *path, const struct group_context *context)
{
    struct file_writer writer;
    char unfinished[PATH_MAX];
    int r;

    if (snprintf(unfinished, sizeof(unfinished), "%s.new", path) >= (int)sizeof(unfinished))
        return -ENAMETOOLONG;
    actor_ends_settle(context->messages);
    r = file_writer_open(&writer, unfinished, upgrade_layout());
    if (r < 0)
        return r;
    r = save_all(&writer.saver, context);
    if (r == 0)
        r = file_writer_flush(&writer);
    file_writer_close(&writer);
    if (r == 0 && rename(unfinished, path) < 0)
        r = -errno;
    if (r < 0)
        (void)unlink(unfinished);
    else
        attachments_drop_saved(context);
    return r;
}

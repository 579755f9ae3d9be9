/* SPDX-License-Identifier: MIT */
#include "supervisor/upgrade/save.h"

#include "supervisor/client/attachment.h"
#include "supervisor/event/death.h"
#include "supervisor/group/cell/cell-limit-key.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group-save.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/restore.h"
#include "supervisor/job/job-stream.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include "supervisor/message/remains.h"
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
 * job in hand but its attempts and its last checkpoint. */
static bool is_to_be_saved(const struct job *job)
{
    if (!job->record || job->n_attempts > 0 || job_lacks_checkpoint_on_disk(job))
        return true;
    return job->state != JOB_RUNNING && (job->n_unbegun > 0 || job->put_off);
}

static void save_job(struct saver *saver, const struct job *job)
{
    struct saved_job saved;
    const struct payload *payload = NULL;

    job_stream_save(job, saver);
    if (!is_to_be_saved(job))
        return;
    if (saved_job_fill(&saved, job, job->group->name) < 0 && saver->error == 0)
        saver->error = -ENOMEM;
    if (job->record)
        saved.row.number = durable_job_number(job);
    else if (!job->payload_lost)
        payload = &job->payload; /* or its result */
    record_save(saver, &SAVED_JOB_RECORD, &saved, payload);
}

static void save_list(struct saver *saver, const struct list *jobs)
{
    list_for_each_entry (job, jobs, struct job, link)
        save_job(saver, job);
}

static void save_queue(struct saver *saver, const struct queue *queue)
{
    for (unsigned i = 0; i < QUEUE_PRIORITIES; i++)
        save_list(saver, &queue->bands[i]);
}

/* In the order in which they are handed out: those that a worker has not seen yet come first. */
static void save_cell(struct saver *saver, const struct cell *cell)
{
    pool_each_slot (slot, &cell->pool)
        save_list(saver, &slot->jobs);
    save_list(saver, &cell->pending);
    list_for_each_entry (key, &cell->lines, struct limit_key, link)
        save_queue(saver, key->held);
    save_queue(saver, &cell->queue);
    save_list(saver, &cell->backoff);
}

static void save_results(struct saver *saver, const struct list *results)
{
    list_for_each_entry (result, results, struct kept_result, link)
        save_job(saver, result->job);
}

/* A job that comes back holds its unique key if no other one does, so jobs that wait for a key
 * follow those that hold it, of all cells. Results follow the jobs that wait for them. */
static void save_jobs(struct saver *saver, const struct registry *registry)
{
    registry_each_group (group, registry) {
        group_each_cell (cell, group)
            save_cell(saver, cell);
        group_each_cell (cell, group)
            save_list(saver, &cell->aside);
    }
    registry_each_group (group, registry) {
        save_results(saver, &group->results.jobs);
        save_results(saver, &group->results.aside);
    }
}

/* Publishes messages that were written to actors: they count as sent. */
static void flush_actor(const struct actor *actor, struct saver *saver)
{
    if (actor->inbox.endpoint)
        endpoint_flush(actor->inbox.endpoint);
}

static void save_all(struct saver *saver, const struct group_context *context)
{
    actors_save_each(context->messages, saver, flush_actor);
    save_jobs(saver, context->registry);
    waiting_room_save(context->durable->inherited, saver);
    death_log_save(context->deaths, saver);
    dead_letters_save(&context->messages->dead_letters, saver);
    groups_save(context, saver);
    store_tally_save(context->durable->store, saver);
    upgrade_save_actors(context->messages, saver);
}

/* The file has its name once it is complete. */
int save(const char *path, const struct group_context *context)
{
    struct file_writer writer;
    char unfinished[PATH_MAX];
    int r;

    if (snprintf(unfinished, sizeof(unfinished), "%s.new", path) >= (int)sizeof(unfinished))
        return -ENAMETOOLONG;
    remains_settle(context->messages);
    registry_each_group (group, context->registry)
        group_commands_finish(group);
    r = file_writer_open(&writer, unfinished, upgrade_layout());
    if (r < 0)
        return r;
    save_all(&writer.saver, context);
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

/* SPDX-License-Identifier: MIT */

/* Jobs that an earlier supervisor accepted return to their cell. */

#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/cell-progress.h"
#include "supervisor/group/group.h"
#include "supervisor/job/job-unique.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-load.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/succession/record.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns 0 or -ENOMEM. */
static int restore_deadline(struct cell *cell, struct job *job, const struct job_row *row)
{
    usec_t left = usec_sub(row->deadline, clock_steady());

    if (row->deadline == 0)
        return 0;
    if (row->time_left > 0)
        left = usec_min(left, row->time_left);
    return cell_arm_deadline(cell, job, usec_add(cell_now(cell), left));
}

/* Makes a job with the id of the row. Returns 0, JOB_E_EXISTS or -errno. */
static int make_job(struct cell *cell, const struct job_row *row, const struct saved_job *saved,
                    struct job **ret)
{
    struct job_table *jobs = cell->context->jobs;
    struct protocol_id id = {0};
    int r;

    if (row->name_size > 0 && row->name_size < sizeof(id.name))
        memcpy(id.name, row->name, row->name_size);
    if (!saved)
        return job_new(jobs, id.name, ret);
    id.high = saved->id_high;
    id.low = saved->id_low;
    r = job_restore(jobs, saved->handle, &id, ret);
    if (r == 0)
        (*ret)->payload_lost = saved->payload_lost;
    return r;
}

/* Finds the state of a durable job that an upgrade has handed over. Returns whether there is any;
 * its texts are valid until it is removed from the waiting room. */
static bool find_saved(struct durable_jobs *durable, int64_t number, struct saved_job *ret)
{
    struct saved_reader reader;

    if (!waiting_room_find(durable->inherited, SAVED_JOB_ROW, (uint64_t)number, &reader))
        return false;
    record_get(&reader, &SAVED_JOB_RECORD, ret);
    if (reader.damaged)
        log_error("how attempts of durable job %" PRId64 " failed is lost in the upgrade: its row "
                  "is damaged",
                  number);
    return !reader.damaged;
}

void cell_give_attempts(struct durable_jobs *durable, struct job *job, int64_t number)
{
    struct saved_job saved;

    if (find_saved(durable, number, &saved))
        job_restore_attempts(job, saved.attempts, saved.n_attempts);
    waiting_room_remove(durable->inherited, SAVED_JOB_ROW, (uint64_t)number);
}

static void give_checkpoint(struct loaded_job *loaded, const struct saved_job *saved)
{
    struct checkpoint *checkpoint =
        saved->has_checkpoint ? checkpoint_new(saved->row.checkpoint, saved->row.checkpoint_size)
                              : NULL;

    if (!checkpoint)
        return;
    (void)checkpoint_unref(loaded->checkpoint);
    loaded->checkpoint = checkpoint;
    loaded->is_newer = true;
}

/* Adds what the row lacks, which may be all progress: the store may have failed. */
static void give_saved(struct durable_jobs *durable, struct job *job, struct loaded_job *loaded)
{
    struct job_row *row = &loaded->row;
    struct saved_job saved;

    if (!find_saved(durable, row->number, &saved))
        return;
    row->facts = saved.row.facts;
    row->state = saved.row.state;
    row->due = saved.row.due;
    row->delay = saved.row.delay;
    give_checkpoint(loaded, &saved);
    job_restore_attempts(job, saved.attempts, saved.n_attempts);
}

static void restore_facts(const struct cell *cell, struct job *job, const struct job_row *row)
{
    job->facts = row->facts;
    job->keep_result = true; /* its submitter, if it waited, asks for it by its id */
    job_set_options(job, &row->asked, cell->config);
    job->max_retries = row->max_retries;
}

/* Lists the job with its unique key. It does not hold the key if it is about to end: the job that
 * has replaced it may have begun. Nor if the row of an earlier job with the key is still to be
 * read: jobs that wait are read before those that have begun. */
static void join_unique(const struct cell *cell, struct job *job)
{
    const struct names_on_disk *on_disk = &cell->context->durable->unique;
    const struct unique_id *id;

    unique_join(cell->context->jobs, job);
    if (!job->record || !job_is_unique(job))
        return;
    id = &job->rare->unique;
    if (job_cancel_requested(job) ||
        names_on_disk_has_before(on_disk, id, sizeof(*id), durable_job_number(job)))
        unique_yield(cell->context->jobs, job);
}

/* Returns -ENOMEM, or notes any other problem in the loaded job and returns 0: a job with a damaged
 * row is made, and then ends. */
static int or_problem(struct loaded_job *loaded, int r, const char *what)
{
    if (r < 0 && r != -ENOMEM) {
        loaded->damaged = what;
        loaded->row.state = JOB_ROW_WAITING; /* it has nothing else to wait for */
    }
    return r == -ENOMEM ? r : 0;
}

bool cell_end_damaged(struct cell *cell, struct job *job, const struct loaded_job *loaded)
{
    char reason[64];

    if (!loaded->damaged)
        return false;
    (void)snprintf(reason, sizeof(reason), "%s is damaged on disk", loaded->damaged);
    cell_end_job(cell, job, JOB_DEAD, reason);
    return true;
}

int cell_restore_job(struct cell *cell, struct loaded_job *loaded, const struct saved_job *saved,
                     struct job **ret)
{
    struct job_row *row = &loaded->row;
    const uint32_t allows = job_row_allows(row);
    struct job *job;
    int r;

    r = make_job(cell, row, saved, &job);
    if (r != 0)
        return r == JOB_E_EXISTS ? CELL_E_EXISTS : -ENOMEM;
    job->group = cell->group;
    job->cell = cell;
    if (!saved)
        give_saved(cell->context->durable, job, loaded);
    else
        job_restore_attempts(job, saved->attempts, saved->n_attempts);
    restore_facts(cell, job, row);
    r = or_problem(loaded, job_set_key(job, row->key, row->key_size), "its key");
    if (r == 0 && !cell_has_released_key(cell, row))
        r = unique_set(job, &(struct unique_id){row->unique_high, row->unique_low});
    if (r == 0 && job->rare)
        job->rare->debounced = row->debounced;
    if (r == 0)
        r = job_set_tags(job, row->tags, row->tags_size);
    if (r == 0)
        r = job_set_traceparent(job, row->traceparent, row->traceparent_size);
    if (r == 0 && !saved)
        r = durable_job_take(cell->context->durable, job, cell->group->name, row->number);
    if (r == 0 && !saved) {
        durable_of(job)->stored = true;
        durable_of(job)->allows = allows;
    }
    if (r == 0)
        r = or_problem(loaded, cell_claim_ties(job, row), "what it waits for");
    if (r == 0)
        r = job_set_checkpoint(job, TAKE_PTR(loaded->checkpoint));
    if (r == 0)
        r = restore_deadline(cell, job, row);
    if (r < 0) {
        job_unref(cell->context->jobs, job);
        return r;
    }
    if (!saved)
        waiting_room_remove(cell->context->durable->inherited, SAVED_JOB_ROW,
                            (uint64_t)row->number);
    payload_move(&job->payload, &loaded->payload);
    join_unique(cell, job);
    *ret = job;
    return 0;
}

/* An attempt that the row does not know did not count, as its worker was stopped. */
static void resume_waiting(struct cell *cell, struct job *job, const struct loaded_job *loaded)
{
    const struct job_row *row = &loaded->row;

    if (row->state == JOB_ROW_DELAYED)
        cell_resume_wait(cell, job, JOB_DELAYED, row);
    else if (row->state == JOB_ROW_BACKOFF)
        cell_resume_wait(cell, job, JOB_BACKOFF, row);
    else
        cell_enqueue(cell, job, false);
    if (job->record && loaded->is_newer)
        durable_job_checkpoint(job);
    else if (job->record && durable_of(job)->kept)
        durable_job_update(job, true); /* the numbers of attempts are not used again */
}

/* Whether it is still to be decided what follows the last attempt, which failed before the row was
 * read. */
static bool is_undecided(const struct job_row *row)
{
    return row->state == JOB_ROW_BACKOFF && row->due == 0;
}

int cell_resume_job(struct cell *cell, struct loaded_job *loaded, const struct saved_job *saved)
{
    uint32_t n_missed;
    struct job *job;
    int r = cell_restore_job(cell, loaded, saved, &job);

    if (r != 0)
        return r;
    FAULT_POINT("job.restored");
    cell_count_live(cell);
    job_count(&cell->counts, JOBS_BYTES, (int64_t)job_bytes(job));
    submitter_adopt(&cell->submitters, job);
    n_missed = job->record ? durable_job_missed_ends(job, &loaded->row) : 0;
    if (cell_end_damaged(cell, job, loaded))
        return 0;
    if (is_undecided(&loaded->row)) {
        if (loaded->is_newer)
            durable_job_checkpoint(job);
        cell_job_failed_unread(cell, job, loaded->row.delay);
        return 0;
    }
    if (n_missed > 0) {
        job->n_failed += n_missed - 1;
        cell_job_orphaned(cell, job);
        return 0;
    }
    if (job->payload_lost || loaded->row.state == JOB_ROW_RUNNING)
        cell_job_orphaned(cell, job);
    else if (job_cancel_requested(job))
        cell_end_cancelled(cell, job);
    else
        resume_waiting(cell, job, loaded);
    return 0;
}

/* The supervisor crashed before the row said that the job had moved to this group. */
static void restore_move(struct cell *cell, struct job *job, const struct job_row *row)
{
    const char *name = cell->group->name;

    if (strlen(name) == row->group_size && memcmp(name, row->group, row->group_size) == 0)
        return;
    if (job->record && !durable_job_is_ending(job))
        durable_job_move(job, name);
}

static bool is_ending(const struct job *job)
{
    return job->record && durable_job_is_ending(job);
}

static void count_growth(struct cell *cell, struct job *job, uint64_t before)
{
    job_count(&cell->counts, JOBS_BYTES, (int64_t)(job_bytes(job) - before));
    submitter_recharge(job);
}

int cell_complete_ties(struct cell *cell, struct job *job, const struct job_row *row)
{
    const uint64_t before = job_bytes(job);
    int r = cell_claim_ties(job, row);

    if (!is_ending(job))
        count_growth(cell, job, before);
    else if (job->rare)
        job->rare->ties_bytes = 0; /* its bytes do not count any more */
    return r;
}

int cell_complete_job(struct cell *cell, struct job *job, struct loaded_job *loaded)
{
    const struct job_row *row = &loaded->row;
    const bool ended = is_ending(job);

    if ((loaded->checkpoint && job_make_rare(job) < 0) ||
        cell_complete_ties(cell, job, row) == -ENOMEM ||
        job_set_tags(job, row->tags, row->tags_size) < 0 ||
        job_set_traceparent(job, row->traceparent, row->traceparent_size) < 0)
        return -ENOMEM;
    restore_move(cell, job, row);
    if (job->record)
        durable_job_join_ends(job, row);
    job_set_options(job, &row->asked, cell->config);
    job->max_retries = row->max_retries;
    job->payload_lost = false;
    if (!ended) {
        job_count(&cell->counts, JOBS_BYTES, -(int64_t)job_bytes(job));
        payload_move(&job->payload, &loaded->payload);
        if (!job_checkpoint(job)) /* otherwise the worker has made one since */
            (void)job_set_checkpoint(job, TAKE_PTR(loaded->checkpoint));
        job_count(&cell->counts, JOBS_BYTES, (int64_t)job_bytes(job));
        submitter_adopt(&cell->submitters, job);
    }
    if (!job->record)
        return 0;
    durable_of(job)->allows = job_row_allows(row);
    if (!ended && job->started && job->attempt > row->attempt)
        durable_job_update(job, true); /* its number is not used again */
    FAULT_POINT("job.row-found");
    durable_job_found(job, ended ? cell_rest_of(cell, job, durable_of(job)->end) : 0);
    if (!ended && row->cause != PROTOCOL_CAUSE_NONE) /* it may have been cancelled again */
        (void)cell_cancel(job, row->cause, row->canceller);
    return 0;
}

/* ---- jobs that workers of the last supervisor have in hand ---- */

void cell_leave_for_row(struct cell *cell, struct job *job, enum job_row_state state, usec_t pause)
{
    struct saved_writer fields = {0};
    struct saved_job saved;

    (void)saved_job_fill(&saved, job, cell->group->name);
    saved.row.number = durable_job_number(job);
    saved.row.state = state;
    saved.row.due = 0;
    saved.row.delay = pause;
    record_put(&fields, &SAVED_JOB_RECORD, &saved);
    if (!fields.failed)
        (void)waiting_room_add(
            cell->context->durable->inherited, SAVED_JOB_ROW, (uint64_t)saved.row.number,
            &(struct saved_reader){
                .at = fields.bytes, .end = fields.bytes + fields.size, .payload = ""});
    free(fields.bytes);
    cell_drop_job(cell, job, CELL_E_UNREAD);
}

/* Its payload went with the last supervisor: its row has it, if there is one. */
static void cell_describe_restored(struct cell *cell, struct job *job, const struct job_page *page)
{
    job->cell = cell;
    job->group = cell->group;
    job->facts = page->facts;
    job->cost = page->cost;
    job->keep_result = true; /* its submitter asks for it by its id */
    if (job->started && job->started_at == 0)
        job->started_at = loop_realtime(cell->context->loop);
    (void)job_set_key(job, page->key, page->key_size);
    if (!(job->started && cell->config->unique_until == CONFIG_UNIQUE_UNTIL_START)) {
        (void)unique_set(job, &(struct unique_id){page->unique_high, page->unique_low});
        unique_join(cell->context->jobs, job);
    }
    if (page->deadline != 0 && !job_cancel_requested(job)) /* it may be over: in the next turn */
        (void)cell_arm_deadline(cell, job,
                                usec_add(cell_now(cell), usec_sub(page->deadline, clock_steady())));
    job_set_state(job, JOB_RUNNING);
    cell_count_live(cell);
    job_count(&cell->counts, JOBS_RUNNING, 1);
    (void)limits_begin_any(&cell->group->limits, job, false);
    cell_progress_watch(cell);
}

/* Makes the job completely or not at all. Returns 0, JOB_E_EXISTS or -errno. */
static int restore_job(struct cell *cell, const struct job_page *page, struct job **ret)
{
    int r;

    if (!record_is_sound(&JOB_PAGE_RECORD, page))
        return -EBADMSG;
    r = job_restore(cell->context->jobs, page->handle, &page->id, ret);
    if (r != 0 || page->number == 0)
        return r;
    r = durable_job_adopt(cell->context->durable, *ret, cell->group->name, page->number);
    if (r < 0)
        job_unref(cell->context->jobs, *ret);
    return r;
}

struct job *cell_job_resumed(struct pool *pool, const struct job_page *page)
{
    struct cell *cell = cell_of_pool(pool);
    struct job *job;
    int r = restore_job(cell, page, &job);

    if (r != 0) {
        log_error("%s: a job that a worker has in hand cannot be taken over: %s", cell->name,
                  r < 0 ? strerror(-r) : "its id is taken");
        cell_job_missed(pool, page);
        return NULL;
    }
    cell_describe_restored(cell, job, page);
    if (job->record && job_cancel_requested(job))
        durable_job_update(job, false); /* the request may not be on disk yet */
    FAULT_POINT("job.adopted");
    return job;
}

/* Notes the attempt, which the job's row may lack when it is read later. */
void cell_keep_missed(const struct group_context *context, const struct job_page *page)
{
    if (page->number != 0 && record_is_sound(&JOB_PAGE_RECORD, page))
        ended_attempts_leave(&context->durable->attempts, page->number, page->attempt,
                             page->n_failed + 1);
}

void cell_job_missed(struct pool *pool, const struct job_page *page)
{
    cell_keep_missed(cell_of_pool(pool)->context, page);
}

void cell_tell_restored(struct cell *cell, const struct job *job)
{
    char id[PROTOCOL_ID_TEXT];

    pool_tell(&cell->pool,
              (struct event){
                  .level = LOG_LEVEL_NOTICE,
                  .type = "job.recovered",
                  .job = job_format_id(job, id),
                  .job_state = job_state_to_string(job->state),
                  .attempt = job->attempt,
                  .cause = job->state == JOB_DEAD ? attempt_cause_to_string(job->failed_by) : NULL},
              "job %s, in hand when the supervisor ended, has ended: %s", id,
              job_state_to_string(job->state));
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/store/durable-job.h"

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "supervisor/job/checkpoint.h"
#include "supervisor/job/job-unique.h"
#include "supervisor/job/job-waiter.h"
#include "supervisor/store/job-number.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/store/pieces.h"
#include "supervisor/store/removal.h"
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- the row ---- */

/* Fills in what never changes. */
static void durable_describe(struct durable_job *durable)
{
    const struct job *job = durable->record.job;
    struct job_row *row = &durable->row;

    job_to_row(row, job, durable->group);
    durable->payload = job->payload;
    row->payload = payload_data(&durable->payload);
    row->payload_fd = durable->payload.fd;
}

/* Sets the group in the row. That of a job that was read from disk is set only when it ends. */
static void durable_set_group(struct durable_job *durable)
{
    durable->row.group = durable->group;
    durable->row.group_size = (uint32_t)strlen(durable->group);
}

/* ---- additions that are held ---- */

#define CREDIT_MAX  16
#define CREDIT_LOST 4  /* by one that did not pay */
#define CREDIT_WON  8  /* by one that did, while few do */
#define TRY_EVERY   64 /* of those that are not held without credit */

/* Whether to hold the next. */
static bool hold_begin(struct durable_hold *hold)
{
    if (hold->credit < 0 && ++hold->n_passed < TRY_EVERY)
        return false;
    hold->n_passed = 0;
    return true;
}

static void hold_end(struct durable_job *durable, bool paid)
{
    struct durable_hold *hold = durable->hold;
    int credit;

    if (!hold)
        return;
    durable->hold = NULL;
    credit = hold->credit + (!paid ? -CREDIT_LOST : hold->credit < 0 ? CREDIT_WON : 1);
    hold->credit = credit < -CREDIT_MAX ? -CREDIT_MAX : credit > CREDIT_MAX ? CREDIT_MAX : credit;
}

/* ---- a task that has joined the addition ---- */

void durable_job_join(struct job *job, struct store_task *task)
{
    struct durable_job *durable = durable_of(job);

    assert(durable->given & DURABLE_ADD && !durable->joined);
    durable->joined = task;
}

static void durable_end_joined(struct store_task *joined, int result)
{
    if (joined)
        joined->done(joined, result);
}

/* ---- giving ---- */

/* Gives the store the changes that are noted. */
static void durable_give(struct durable_job *durable)
{
    durable->jobs->n_busy++;
    durable->given = durable->noted;
    durable->noted = 0;
    if (durable->keeps & DURABLE_RESULT && job_own_ties(durable->record.job))
        (void)ties_write(job_own_ties(durable->record.job)); /* without memory it is as it began */
    if (durable->given & DURABLE_END)                        /* it may have been read, not added */
        job_to_row(&durable->row, durable->record.job, durable->group);
    if (durable->row.group || durable->given & DURABLE_MOVE)
        durable_set_group(durable);
    if (durable->given & DURABLE_MOVE)
        durable->row.asked = job_asked(durable->record.job);
    job_progress_to_row(&durable->row, durable->record.job);
    if (durable->given & DURABLE_CHECKPOINT && job_checkpoint(durable->record.job))
        durable->checkpoint = checkpoint_ref(job_checkpoint(durable->record.job));
    if (durable->given & DURABLE_HAND && durable->record.job->state == JOB_QUEUED) {
        durable->row.state = JOB_ROW_HANDED;
        durable->row.attempt++;
    }
    /* The store may refuse an addition, as the submitter has no answer yet. It does not refuse one
     * that is a dead letter by now, or that replaces a dead letter and takes no more space. */
    durable->task.addition = (durable->given & DURABLE_ADD) != 0 && durable->replaces == 0 &&
                             !(durable->ended && !durable->record.job->keep_result);
    durable->task.urgency = durable->hold      ? STORE_HELD
                            : durable->hurries ? STORE_AT_ONCE
                                               : STORE_LAZY;
    durable->hurries = false;
    store_add(durable->jobs->store, &durable->task);
}

/* The store has nothing of the job any more. */
static void durable_got(struct durable_job *durable)
{
    struct durable_jobs *jobs = durable->jobs;

    durable->checkpoint = checkpoint_unref(durable->checkpoint);
    durable->given = 0;
    if (--jobs->n_busy == 0 && jobs->idle)
        jobs->idle(jobs);
}

/* Takes the task back from the store. Returns false if that is too late. */
static bool durable_take_back(struct durable_job *durable)
{
    if (durable->given == 0)
        return true;
    if (!store_cancel(durable->jobs->store, &durable->task))
        return false;
    durable->noted |= durable->given;
    durable->hurries |= durable->task.urgency != STORE_LAZY;
    durable_got(durable);
    return true;
}

/* The end of its attempt is written, or does not count any more. */
static void durable_forget_attempt(struct durable_job *durable)
{
    if (durable->kept)
        ended_attempts_remove(&durable->jobs->attempts, TAKE_PTR(durable->kept));
}

/* The job leaves memory before its row is read: leaves the end of its attempt to the job that will
 * be made from the row. */
static void keep_for_row(struct durable_job *durable)
{
    if (durable->kept)
        ended_attempts_put_back(&durable->jobs->attempts, TAKE_PTR(durable->kept));
}

static void durable_drop_payload(struct durable_job *durable)
{
    if (durable->owns_payload)
        payload_deinit(&durable->payload);
    durable->owns_payload = false;
}

void durable_job_take_payload(struct job *job)
{
    struct durable_job *durable = durable_of(job);

    if (!(durable->given & DURABLE_ADD))
        return;
    durable->owns_payload = true;
    payload_init(&job->payload);
}

static void durable_done(struct store_task *task, int result)
{
    struct durable_job *durable = list_entry(task, struct durable_job, task);
    const unsigned changes = durable->given;
    struct store_task *joined = NULL;

    durable_got(durable);
    durable_drop_payload(durable);
    if (changes & DURABLE_ADD) {
        hold_end(durable, false);
        joined = TAKE_PTR(durable->joined);
        durable->stored = result == 0;
        /* The row may be on disk, or pieces of the payload are. */
        if (result == -EIO ||
            (result != 0 && in_pieces(durable->row.payload_size, durable->row.payload_fd)))
            removal_add(durable->jobs->store, durable->row.number, ROWS_ALL);
    }
    if (result == 0)
        durable->allows = job_row_allows(&durable->row);
    if (result != 0) {
        durable->noted = 0;
        durable->hurries = false;
    }
    if (durable->noted != 0)
        durable_give(durable);
    else if (result == 0)
        durable_forget_attempt(durable);
    durable->jobs->written(durable->record.job, changes, result);
    durable_end_joined(joined, result);
}

/* ---- the job ---- */

static int durable_make(struct durable_jobs *jobs, struct job *job, const char *group,
                        int64_t number, const struct protocol_id *id)
{
    struct durable_job *durable = calloc(1, sizeof(*durable));

    if (!durable)
        return -ENOMEM;
    durable->jobs = jobs;
    durable->group = group;
    durable->row = (struct job_row)JOB_ROW_NULL;
    durable->row.number = number;
    durable->allows = 1;
    durable->task.apply = durable_write;
    durable->task.done = durable_done;
    list_init(&durable->task.link);
    list_init(&durable->unread_link);
    list_init(&durable->answers);
    list_init(&durable->later);
    job_set_record(jobs->jobs, job, &durable->record, id);
    return 0;
}

int durable_job_take(struct durable_jobs *jobs, struct job *job, const char *group, int64_t number)
{
    const struct protocol_id id = job_number_to_id(store_id_key(jobs->store), number);
    int r = durable_make(jobs, job, group, number, &id);

    if (r == 0 && job->name)
        names_on_disk_remove(&jobs->names, job->name, strlen(job->name), number);
    if (r == 0 && job->rare)
        names_on_disk_remove(&jobs->unique, &job->rare->unique, sizeof(job->rare->unique), number);
    return r;
}

int durable_job_adopt(struct durable_jobs *jobs, struct job *job, const char *group, int64_t number)
{
    struct protocol_id id;
    int r;

    job_get_id(job, &id);
    r = durable_make(jobs, job, group, number, &id);
    if (r < 0)
        return r;
    durable_of(job)->stored = true;
    list_push_back(&jobs->unread, &durable_of(job)->unread_link);
    return 0;
}

void durable_job_found(struct job *job, unsigned keeps)
{
    struct durable_job *durable = durable_of(job);

    list_unlink(&durable->unread_link);
    if (durable->noted == 0)
        return;
    if (durable->ended)
        durable->keeps = durable->letter != 0 ? keeps : keeps & ~(unsigned)DURABLE_LETTER;
    list_swap(&durable->answers, &durable->later);
    durable->hurries = true;
    durable_give(durable);
}

void durable_job_leave(struct job *job)
{
    struct durable_job *durable = durable_of(job);

    if (!durable_job_is_unread(job))
        return;
    list_unlink(&durable->unread_link);
    durable->noted = 0;
    keep_for_row(durable);
}

static struct store_task *take_query(struct durable_jobs *jobs)
{
    struct list *node = list_first(&jobs->queries);

    if (!node)
        return NULL;
    list_unlink(node);
    return list_entry(node, struct store_task, link);
}

void durable_jobs_ask(struct durable_jobs *jobs)
{
    struct store_task *query;

    while ((query = take_query(jobs)))
        store_add(jobs->store, query);
}

void durable_jobs_refuse(struct durable_jobs *jobs)
{
    struct list refused = LIST_INIT(refused);

    list_for_each_entry_safe (query, &jobs->queries, struct store_task, link)
        if (query->impatient) {
            list_unlink(&query->link);
            list_push_back(&refused, &query->link);
        }
    list_until_empty (query, &refused, struct store_task, link) {
        list_unlink(&query->link);
        query->done(query, -EIO);
    }
}

void durable_jobs_close(struct durable_jobs *jobs)
{
    struct store_task *query;

    while ((query = take_query(jobs)))
        query->done(query, -ECANCELED);
    list_for_each_entry_safe (durable, &jobs->unread, struct durable_job, unread_link) {
        list_unlink(&durable->unread_link);
        durable->noted = 0;
        if (durable->ended)
            jobs->written(durable->record.job, DURABLE_END, -ECANCELED);
    }
}

int durable_job_new(struct durable_jobs *jobs, struct job *job, const char *group, int64_t replaces)
{
    int r = durable_job_take(jobs, job, group, store_next_number(jobs->store));

    if (r == 0)
        durable_of(job)->replaces = replaces;
    return r;
}

int durable_job_take_result(struct durable_jobs *jobs, struct job *job, const char *group,
                            int64_t number)
{
    int r = durable_job_take(jobs, job, group, number);

    if (r < 0)
        return r;
    durable_of(job)->ended = true;
    durable_of(job)->end = job->state;
    durable_of(job)->keeps = DURABLE_RESULT | DURABLE_BYTES;
    return 0;
}

struct job *durable_job_find(const struct durable_jobs *jobs, const struct job_row *row)
{
    struct protocol_id id = job_number_to_id(store_id_key(jobs->store), row->number);
    struct job *job;

    memcpy(id.name, row->name_size > 0 ? row->name : "", row->name_size);
    id.name[row->name_size] = '\0';
    job = job_by_id(jobs->jobs, &id);
    return job && job->record && durable_job_number(job) == row->number ? job : NULL;
}

/* A job with a name, or that replaces a dead letter, depends on other rows: it takes its turn. */
void durable_job_add(struct job *job, struct durable_hold *hold)
{
    struct durable_job *durable = durable_of(job);

    durable_describe(durable);
    if (job->rare && job->rare->replaces && job->rare->replaces->record)
        durable->cancels = durable_job_number(job->rare->replaces);
    if (hold && !job->name && durable->replaces == 0 && durable->cancels == 0 && hold_begin(hold))
        durable->hold = hold;
    durable->noted |= DURABLE_ADD;
    durable->hurries = true;
    durable_give(durable);
}

/* A lazy update does not join an addition that is held or being written: the end may come first. */
static void durable_note_update(struct durable_job *durable, bool lazy)
{
    durable->noted |= DURABLE_UPDATE;
    durable->hurries |= !lazy;
    if ((lazy && durable->given != 0) || !durable_take_back(durable))
        return;
    durable->hold = NULL;
    durable_give(durable);
}

void durable_job_update(struct job *job, bool lazy)
{
    struct durable_job *durable = durable_of(job);

    if (durable_job_is_unread(job))
        durable->noted |= DURABLE_UPDATE; /* written when its row has been read */
    else if (durable->stored || durable_job_is_busy(job))
        durable_note_update(durable, lazy);
}

void durable_job_checkpoint(struct job *job)
{
    durable_of(job)->noted |= DURABLE_CHECKPOINT;
    durable_job_update(job, false);
}

void durable_job_close(struct job *job)
{
    durable_of(job)->noted |= DURABLE_CLOSE;
    durable_job_update(job, false);
}

void durable_job_hand(struct job *job)
{
    struct durable_job *durable = durable_of(job);

    if (durable_job_may_begin(job) || (durable->given | durable->noted) & DURABLE_HAND)
        return;
    durable->noted |= DURABLE_HAND;
    durable_job_update(job, false);
}

void durable_job_move(struct job *job, const char *group)
{
    struct durable_job *durable = durable_of(job);

    durable->group = group;
    durable->noted |= DURABLE_MOVE;
    durable_job_update(job, false);
}

bool durable_job_end(struct job *job, enum job_state end, unsigned keeps, uint64_t letter)
{
    struct durable_job *durable = durable_of(job);
    const bool taken_back = durable_take_back(durable);

    if (durable->jobs->unreadable)
        list_unlink(&durable->unread_link);
    hold_end(durable, taken_back);
    if (taken_back && !durable->stored &&
        ((keeps == 0 && durable->replaces == 0) || job->refusal != 0)) {
        durable->noted = 0;
        durable_forget_attempt(durable);
        durable_end_joined(TAKE_PTR(durable->joined), 0);
        return false;
    }
    durable->ended = true;
    durable->end = end;
    durable->keeps = keeps;
    durable->letter = letter;
    durable->noted = DURABLE_END | (durable->noted & DURABLE_ADD);
    durable->hurries = true;
    if (taken_back && !durable_job_is_unread(job))
        durable_give(durable);
    return true;
}

void durable_job_await(struct job *job, struct job_waiter *waiter)
{
    struct durable_job *durable = durable_of(job);

    assert(durable_job_is_busy(job));
    list_unlink(&waiter->link);
    list_push_back(durable->noted != 0 ? &durable->later : &durable->answers, &waiter->link);
}

void durable_job_answer(struct job *job)
{
    struct durable_job *durable = durable_of(job);

    list_until_empty (waiter, &durable->answers, struct job_waiter, link) {
        list_unlink(&waiter->link);
        waiter->changed(waiter, job);
    }
    list_swap(&durable->answers, &durable->later);
}

void durable_job_answer_all(struct job *job)
{
    durable_job_answer(job);
    durable_job_answer(job);
}

/* The next start reads the result again. */
static void leave_on_disk(const struct durable_job *durable)
{
    if (!durable->jobs->incomplete)
        log_error("%s: memory is short: the results of some jobs stay on disk until the next start",
                  durable->row.group);
    durable->jobs->incomplete = true;
}

void durable_job_free(struct job *job)
{
    struct durable_job *durable = durable_of(job);
    const bool kept =
        durable->ended && durable->keeps & DURABLE_RESULT && job_ended(job) && job->refusal == 0;

    if (kept && job->forgotten)
        leave_on_disk(durable);
    else if (kept)
        removal_add(durable->jobs->store, durable->row.number, 1u << ROWS_ENDED);

    assert(!durable_job_is_busy(job));
    if (durable->stored && !durable->ended && job->name)
        names_on_disk_add(&durable->jobs->names, job->name, strlen(job->name), durable->row.number);
    if (durable->stored && !durable->ended && job_is_unique(job))
        names_on_disk_add(&durable->jobs->unique, &job->rare->unique, sizeof(job->rare->unique),
                          durable->row.number);
    if (durable->stored)
        keep_for_row(durable);
    durable_forget_attempt(durable);
    list_unlink(&durable->unread_link);
    job_drop_record(durable->jobs->jobs, job);
    durable_drop_payload(durable);
    free(durable);
}

/* ---- ends of attempts, in memory that outlives the supervisor until they are written ---- */

/* Until the new entry is complete, the former one stays: a crash between them would lose both. */
void durable_job_keep_attempt(struct job *job, bool counts)
{
    struct durable_job *durable = durable_of(job);
    struct ended_attempts *attempts = &durable->jobs->attempts;
    const uint32_t n_failed = job->n_failed + counts;
    struct kept_attempt *entry =
        ended_attempts_add(attempts, durable->row.number, job->attempt, n_failed);

    FAULT_POINT("durable.attempt-kept");
    durable_forget_attempt(durable);
    durable->kept =
        entry ? entry : ended_attempts_add(attempts, durable->row.number, job->attempt, n_failed);
}

/* Takes what is kept of the attempts before `before`, until the row is written: what an upgrade has
 * handed over may be newer than the row. Returns the last one; NULL = none. */
static const struct kept_attempt *take_ends(struct job *job, const struct job_row *row,
                                            uint32_t before)
{
    struct durable_job *durable = durable_of(job);

    durable->kept =
        ended_attempts_join(&durable->jobs->attempts, row->number, durable->kept, before);
    return durable->kept;
}

void durable_job_join_ends(struct job *job, const struct job_row *row)
{
    (void)take_ends(job, row, job->attempt);
}

uint32_t durable_job_missed_ends(struct job *job, const struct job_row *row)
{
    const struct kept_attempt *last = take_ends(job, row, UINT32_MAX);

    if (last && last->attempt > job->attempt)
        job->attempt = last->attempt;
    return last && last->n_failed > row->n_failed ? last->n_failed - row->n_failed : 0;
}

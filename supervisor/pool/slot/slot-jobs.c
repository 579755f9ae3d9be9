/* SPDX-License-Identifier: MIT */
/* Sends jobs to the worker, cancels them, and returns them when the worker is dead, or takes them
 * back from an adopted worker: its inbox has a table of them. */

#include "shared/protocol/protocol.h"
#include "supervisor/job/checkpoint.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/job/job-unique.h"
#include "supervisor/job/job.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/actor.h"
#include "supervisor/pool/slot/slot-private.h"
#include "supervisor/store/durable-job.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Upper bound of a JOB record without key, checkpoint and payload. */
#define JOB_RECORD_FIXED 256u
/* Workers that may die before they begin a job; later deaths count as its attempts. */
#define UNBEGUN_MAX 3

/* ---- the table of jobs in hand, in the inbox ---- */

static struct memory_header *header_of(const struct slot *slot)
{
    return slot->worker.endpoint.channel.mine.header;
}

static usec_t deadline_of(const struct job *job)
{
    usec_t now;

    if (!job_has_deadline(job))
        return 0;
    now = clock_now();
    return usec_add(clock_steady(), usec_sub(timer_at(&job->deadline->timer), now));
}

/* A JOB record was just written. */
static void hand_add(const struct slot *slot, struct job *job)
{
    const struct unique_id unique = job_is_unique(job) ? job->rare->unique : (struct unique_id){0};
    struct memory_header *header = header_of(slot);
    const uint64_t hands = atomic_load_explicit(&header->hands, memory_order_relaxed);
    const int i = __builtin_ctzll(~hands);
    struct job_page *page;

    job->hand = (uint8_t)i;
    header->jobs[i].cursor = slot->worker.endpoint.channel.out.tail;
    page = slot_page(slot, job);
    page->facts = job->facts;
    page->handle = job->handle;
    page->number = job->record ? durable_of(job)->row.number : 0;
    page->deadline = deadline_of(job);
    page->limit = 0;
    page->unique_high = unique.high;
    page->unique_low = unique.low;
    job_get_id(job, &page->id);
    page->key_size = job->key_size;
    page->cost = job->cost;
    if (job->key_size > 0)
        memcpy(page->key, job->key, job->key_size);
    /* Partner: memory_renew() in the next supervisor, which finds the entry complete. */
    atomic_store_explicit(&header->hands, hands | UINT64_C(1) << i, memory_order_release);
}

static void hand_remove(const struct slot *slot, const struct job *job)
{
    struct memory_header *header = header_of(slot);
    uint64_t hands;

    if (!header)
        return;
    /* No other process writes it. */
    hands = atomic_load_explicit(&header->hands, memory_order_relaxed);
    atomic_store_explicit(&header->hands, hands & ~(UINT64_C(1) << job->hand),
                          memory_order_relaxed);
}

/* Returns which of the entries `left` was assigned first. Cursors wrap around. */
static unsigned find_oldest(const struct slot *slot, uint64_t left)
{
    const uint32_t tail = slot->worker.endpoint.channel.out.tail;
    const struct memory_job *jobs = header_of(slot)->jobs;
    unsigned oldest = (unsigned)__builtin_ctzll(left);

    for (left &= left - 1; left != 0; left &= left - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(left);

        if (tail - jobs[i].cursor > tail - jobs[oldest].cursor)
            oldest = i;
    }
    return oldest;
}

static const struct job_page *page_of(const struct memory_job *entry)
{
    return (const struct job_page *)(const void *)entry->kept;
}

static bool resume(struct slot *slot, unsigned i)
{
    const struct ring_producer *out = &slot->worker.endpoint.channel.out;
    const struct memory_job *entry = &header_of(slot)->jobs[i];
    struct job *job = NULL;

    if (memory_job_is_published(entry, out->tail, out->size))
        job = slot->pool->handler->job_resumed(slot->pool, page_of(entry));
    if (!job)
        return false;
    job->slot = slot;
    job->hand = (uint8_t)i;
    list_push_back(&slot->jobs, &job->link);
    slot->n_jobs++;
    return true;
}

void slot_hand_resume(struct slot *slot)
{
    uint64_t hands = atomic_load_explicit(&header_of(slot)->hands, memory_order_relaxed);

    for (uint64_t left = hands; left != 0;) {
        const unsigned i = find_oldest(slot, left);
        const uint64_t bit = UINT64_C(1) << i;

        left &= ~bit;
        if (!resume(slot, i))
            hands &= ~bit;
    }
    atomic_store_explicit(&header_of(slot)->hands, hands, memory_order_relaxed);
}

static void lose_one(void *userdata, const struct memory_job *entry)
{
    struct pool *pool = userdata;

    pool->handler->job_missed(pool, page_of(entry));
}

void slot_hand_lose(const struct slot *slot, int inbox)
{
    int r = memory_scan_jobs(inbox, lose_one, slot->pool);

    if (r < 0)
        log_warning("%s: which jobs it has in hand cannot be read: %s", slot->name, strerror(-r));
}

/* ---- sending ---- */

/* A worker with a smaller mailbox than that of the last attempt may have no room for it. */
static const struct checkpoint *checkpoint_that_fits(const struct slot *slot, const struct job *job)
{
    const struct memory_header *header = slot->worker.endpoint.channel.mine.header;
    const struct checkpoint *checkpoint = job_checkpoint(job);

    if (!checkpoint ||
        checkpoint->size <= protocol_checkpoint_max(header->ring_size, header->inline_max))
        return checkpoint;
    actor_log(slot->actor, LOG_LEVEL_WARNING,
              "a job starts again: its checkpoint of %" PRIu32
              " bytes is too large for the mailbox",
              checkpoint->size);
    return NULL;
}

/* Returns the ids of the jobs that this one has waited for, if the record has room for them; NULL =
 * it does without. The caller frees them. */
static char *list_parents(const struct slot *slot, const struct job *job)
{
    const struct memory_header *header = slot->worker.endpoint.channel.mine.header;
    const struct checkpoint *checkpoint = job_checkpoint(job);
    const uint32_t room =
        header->ring_size / 2 - header->inline_max - 1024 - (checkpoint ? checkpoint->size : 0);
    const struct job_ties *ties = job->rare->ties;
    char *ids = malloc(PROTOCOL_AFTER_MAX + 1), *at = ids;

    for (unsigned i = 0; ids && i < ties->n; i++)
        at = stpcpy(i > 0 ? stpcpy(at, ",") : at, ties->edges[i].parent->id);
    if (ids)
        *(at - ids <= room ? at : ids) = '\0';
    return ids;
}

/* Writes what few jobs have into `rare`, of PROTOCOL_JOB_RARE_MAX bytes. Returns its size, 0 =
 * nothing of it. */
static uint32_t put_rare(const struct slot *slot, const struct job *job, char *rare)
{
    _cleanup_free_ char *parents = job_own_ties(job) ? list_parents(slot, job) : NULL;
    const bool traced = job_traceparent(job) != NULL;
    char traceparent[TRACEPARENT_SIZE + 1];
    const struct protocol_job_rare record = {
        .parents = parents,
        .parents_size = parents ? (uint32_t)strlen(parents) : 0,
        .traceparent = traceparent,
        .traceparent_size = traced ? sizeof(traceparent) : 0,
    };

    if (traced)
        job_attempt_traceparent(job, traceparent);
    return parents || traced ? (uint32_t)protocol_put_job_rare(rare, PROTOCOL_JOB_RARE_MAX, &record)
                             : 0;
}

static int write_job(struct slot *slot, const struct job *job, const char *rare, uint32_t rare_size)
{
    /* As the worker was started; the configuration may have changed. */
    const uint32_t inline_max = slot->worker.endpoint.channel.mine.header->inline_max;
    const uint32_t inline_size = job->payload.size > inline_max ? 0 : (uint32_t)job->payload.size;
    const struct checkpoint *checkpoint = checkpoint_that_fits(slot, job);
    const uint32_t checkpoint_size = checkpoint ? checkpoint->size : 0;
    const uint32_t room =
        JOB_RECORD_FIXED + job->key_size + checkpoint_size + rare_size + inline_size;
    struct protocol_job record; /* not cleared: a name in its id takes most of it */
    void *body;
    int r;

    r = endpoint_reserve(&slot->worker.endpoint, room, &body);
    if (r != 0)
        return r;
    r = endpoint_give(&slot->worker.endpoint, &job->payload, &record.payload);
    if (r != 0)
        return r;
    record.handle = job->handle;
    job_get_id(job, &record.id);
    record.attempt = job->attempt;
    record.max_attempts = job->max_retries == UINT32_MAX ? UINT32_MAX : job->max_retries + 1;
    record.timeout = job->timeout;
    record.key = job->key;
    record.key_size = job->key_size;
    record.checkpoint = checkpoint ? checkpoint->bytes : NULL;
    record.checkpoint_size = checkpoint_size;
    record.rare = rare;
    record.rare_size = rare_size;
    r = protocol_put_job(body, room, &record);
    if (r < 0)
        return r;
    endpoint_commit(&slot->worker.endpoint, PROTOCOL_JOB, (uint32_t)r);
    return 0;
}

static int slot_send_job(struct slot *slot, const struct job *job)
{
    static char rare[PROTOCOL_JOB_RARE_MAX]; /* on the stack it would cost something for each job */
    const uint32_t size = job->rare ? put_rare(slot, job, rare) : 0;

    return write_job(slot, job, rare, size);
}

bool slot_job_waits(const struct slot *slot)
{
    return slot->worker.wants_room && slot_is_up(slot) && slot->pool->handler->has_job(slot->pool);
}

/* The output of an idle worker belongs to no job. */
static void slot_begin_output(struct slot *slot)
{
    struct capture *output = &slot->worker.process.output;

    if (capture_has_output(output))
        capture_cut(output);
    slot->worker.output_mark = output->end;
}

int slot_assign(struct slot *slot, struct job *job)
{
    int r;

    /* Set before the worker can see the job. */
    if (slot->n_jobs == 0)
        slot_begin_output(slot);
    r = slot_send_job(slot, job);
    if (slot->worker.wants_room)
        actor_wake(slot->actor);
    slot->worker.wants_room = r == ENDPOINT_E_FULL;
    slot->actor->inbox.full = slot->actor->inbox.full || slot->worker.wants_room;
    /* An inbox without jobs and messages has room for one record: InlineMax= is bounded by that. */
    if (r == ENDPOINT_E_FULL && slot->n_jobs == 0 && slot->actor->inbox.n_messages == 0)
        endpoint_break(&slot->worker.endpoint, "answers, but never gives back what it has read");
    if (r < 0 && slot_is_up(slot))
        slot_is_available(slot); /* the supervisor lacks descriptors or memory */
    if (r != 0)
        return r;
    job->slot = slot;
    job->started = false;
    job->started_at = 0;
    job->crashed = false;
    list_push_back(&slot->jobs, &job->link);
    slot->n_jobs++;
    hand_add(slot, job);
    if (slot->n_jobs == 1) {
        slot_clock_job(slot, job);
        slot_await_idle(slot);
        slot_event(slot, LIFECYCLE_EVENT_JOB_ASSIGNED);
    }
    if (slot_may_take_job(slot))
        list_push_back(&slot->pool->available, &slot->available_link);
    return 0;
}

void slot_resume_jobs(struct slot *slot)
{
    struct job *job = slot_job_at_work(slot);
    const usec_t limit = slot_page(slot, job)->limit;

    slot->worker.output_mark = capture_position(&slot->worker.process.output);
    slot_clock_job(slot, job);
    if (limit > 0)
        slot_limit_job(slot, limit);
    if (job_cancel_requested(job))
        slot_cancel(slot, job);
    slot_event(slot, LIFECYCLE_EVENT_JOB_ASSIGNED);
    if (!slot_may_take_job(slot))
        list_unlink(&slot->available_link);
}

void slot_cancel(struct slot *slot, struct job *job)
{
    usec_t grace = usec_add(slot_now(slot), slot->pool->config->timeout_stop);

    slot_hand_update(slot, job);
    /* There is one flag, for the job at work. For a later job it is raised when that job begins. */
    if (job != slot_job_at_work(slot))
        return;
    endpoint_mark(&slot->worker.endpoint, job->handle);
    slot_limit_job(slot, usec_min(grace, slot->worker.job_deadline));
}

int slot_send_stop(struct slot *slot)
{
    void *body;
    int r;

    slot->actor->inbox.control |= MEMORY_CONTROL_STOP;
    endpoint_set_control(&slot->worker.endpoint, slot->actor->inbox.control);
    r = endpoint_reserve(&slot->worker.endpoint, 0, &body);
    if (r != 0)
        return r;
    endpoint_commit(&slot->worker.endpoint, PROTOCOL_STOP, 0);
    return 0;
}

/* ---- taking back ---- */

void slot_let_go(struct slot *slot, struct job *job)
{
    hand_remove(slot, job);
    list_unlink(&job->link);
    job->slot = NULL;
    slot->n_jobs--;
}

/* Whether the worker's death is an attempt of its oldest job. That job is not to blame if it had
 * not begun, unless its time-out is the cause, or several workers in a row die before they begin
 * it. */
static bool slot_death_is_attempt(const struct job *job, const struct death *death)
{
    return job->started || death->cause == DEATH_JOB_TIMEOUT || job->n_unbegun >= UNBEGUN_MAX;
}

void slot_keep_attempt(struct slot *slot, const struct death *death)
{
    struct job *job = slot->n_jobs > 0 ? slot_job_at_work(slot) : NULL;

    if (job && job->record && slot_death_is_attempt(job, death))
        durable_job_keep_attempt(job, death->cause != DEATH_STOP);
}

void slot_lose_jobs(struct slot *slot, const struct death *death)
{
    /* The last one first, since each goes back to the head of the queue. */
    while (slot->n_jobs > 0) {
        struct job *job = list_entry(slot->jobs.prev, struct job, link);
        const bool oldest = slot->n_jobs == 1;
        const bool attempt = oldest && slot_death_is_attempt(job, death);

        if (oldest && !attempt)
            job->n_unbegun++;
        slot_let_go(slot, job);
        if (attempt)
            slot->pool->handler->job_lost(slot->pool, job, death);
        else
            slot->pool->handler->job_returned(slot->pool, job);
    }
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/job/submitter.h"

#include <stdlib.h>

void submitters_init(struct submitters *submitters, struct submitters *parent)
{
    *submitters = (struct submitters){.parent = parent};
    list_init(&submitters->all);
}

static void subtract(uint64_t *from, uint64_t n)
{
    *from = *from > n ? *from - n : 0;
}

static void subtract_jobs(struct submitter_jobs *from, const struct submitter_jobs *jobs)
{
    subtract(&from->n, jobs->n);
    subtract(&from->bytes, jobs->bytes);
}

void submitters_deinit(struct submitters *submitters)
{
    list_for_each_entry_safe (submitter, &submitters->all, struct submitter, link) {
        if (submitter->parent)
            subtract_jobs(&submitter->parent->waiting, &submitter->waiting);
        index_remove(&submitters->by_uid, &submitter->by_uid);
        free(submitter);
    }
    index_deinit(&submitters->by_uid);
    if (submitters->maker)
        submitters->maker->n_cells--;
}

struct submitter *submitter_find(const struct submitters *submitters, uid_t uid)
{
    return index_find_entry(&submitters->by_uid, uid, struct submitter, by_uid);
}

struct submitter *submitter_get(struct submitters *submitters, uid_t uid)
{
    struct submitter *submitter = submitter_find(submitters, uid), *parent = NULL;

    if (submitter)
        return submitter;
    if (submitters->parent && !(parent = submitter_get(submitters->parent, uid)))
        return NULL;
    submitter = calloc(1, sizeof(*submitter));
    if (!submitter)
        return NULL;
    submitter->parent = parent;
    list_push_back(&submitters->all, &submitter->link);
    index_add(&submitters->by_uid, &submitter->by_uid, uid);
    return submitter;
}

static uint32_t size_of(uint64_t bytes)
{
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

/* Counts the job once more, or once less, where jobs in the state are counted. */
static void count(const struct job *job, enum job_state state, bool more)
{
    const struct submitter_jobs one = {1, job->charged};

    if (job_state_is_end(state))
        return;
    for (struct submitter *submitter = job->submitter; submitter; submitter = submitter->parent) {
        struct submitter_jobs *jobs = job_waits(state) ? &submitter->waiting : &submitter->running;

        if (more) {
            jobs->n++;
            jobs->bytes += one.bytes;
        } else {
            subtract_jobs(jobs, &one);
        }
    }
}

static void charge(struct job *job, uint64_t bytes)
{
    count(job, job->state, false);
    job->charged = size_of(bytes);
    count(job, job->state, true);
}

void submitter_charge(struct submitter *submitter, struct job *job)
{
    job->submitter = submitter;
    job->charged = size_of(job_bytes(job));
    count(job, job->state, true);
}

void submitter_recharge(struct job *job)
{
    charge(job, job_bytes(job));
}

void submitters_set_maker(struct submitters *submitters, uid_t uid)
{
    if (submitters->maker)
        return;
    submitters->maker = submitter_get(submitters->parent, uid);
    if (submitters->maker)
        submitters->maker->n_cells++;
}

static struct submitter *get_adopted(struct submitters *submitters, uid_t uid)
{
    if (uid != 0 && list_empty(&submitters->all))
        submitters_set_maker(submitters, uid);
    return uid == 0 ? NULL : submitter_get(submitters, uid);
}

void submitter_adopt(struct submitters *submitters, struct job *job)
{
    struct submitter *submitter = get_adopted(submitters, job->submitter_uid);

    if (submitter)
        submitter_charge(submitter, job);
}

void submitter_adopt_on_disk(struct submitters *submitters, uid_t uid, uint64_t bytes)
{
    struct submitter *submitter = get_adopted(submitters, uid);

    for (; submitter; submitter = submitter->parent) {
        submitter->waiting.n++;
        submitter->waiting.bytes += size_of(bytes);
    }
}

void submitters_forget_on_disk(struct submitters *submitters)
{
    list_for_each_entry (own, &submitters->all, struct submitter, link) {
        const struct submitter_jobs waiting = own->waiting;

        for (struct submitter *each = own; each; each = each->parent)
            subtract_jobs(&each->waiting, &waiting);
    }
}

void submitter_resume(const struct submitters *submitters, struct job *job)
{
    job->submitter = submitter_find(submitters, job->submitter_uid);
    job->charged = size_of(job->payload.size);
    submitter_recharge(job);
}

void submitter_leave_on_disk(struct job *job)
{
    charge(job, job->payload.size);
    job->submitter = NULL;
}

void submitter_note(struct job *job, enum job_state state)
{
    count(job, job->state, false);
    count(job, state, true);
    if (job_state_is_end(state))
        job->submitter = NULL;
}

void submitter_leave(struct job *job)
{
    count(job, job->state, false);
    job->submitter = NULL;
}

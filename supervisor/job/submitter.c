/* SPDX-License-Identifier: MIT */
#include "supervisor/job/submitter.h"

#include "supervisor/job/job.h"
#include <stdlib.h>

void submitters_init(struct submitters *submitters)
{
    *submitters = (struct submitters){0};
    list_init(&submitters->all);
}

void submitters_deinit(struct submitters *submitters)
{
    list_for_each_safe (node, &submitters->all) {
        struct submitter *submitter = list_entry(node, struct submitter, link);

        index_remove(&submitters->by_uid, &submitter->by_uid);
        free(submitter);
    }
    index_deinit(&submitters->by_uid);
}

struct submitter *submitter_find(const struct submitters *submitters, uid_t uid)
{
    struct index_entry *entry = index_find(&submitters->by_uid, uid);

    return entry ? list_entry(entry, struct submitter, by_uid) : NULL;
}

struct submitter *submitter_get(struct submitters *submitters, uid_t uid)
{
    struct submitter *submitter = submitter_find(submitters, uid);

    if (submitter)
        return submitter;
    submitter = calloc(1, sizeof(*submitter));
    if (!submitter)
        return NULL;
    list_push_back(&submitters->all, &submitter->link);
    index_add(&submitters->by_uid, &submitter->by_uid, uid);
    return submitter;
}

static uint32_t size_of(uint64_t bytes)
{
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

void submitter_charge(struct submitter *submitter, struct job *job)
{
    job->submitter = submitter;
    job->charged = size_of(job->payload.size + (job->rare ? job->rare->ties_bytes : 0));
    if (job_waits(job->state))
        submitter_note(job, true);
}

static struct submitter *get_adopted(struct submitters *submitters, uid_t uid)
{
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

    if (!submitter)
        return;
    submitter->n_waiting++;
    submitter->bytes += size_of(bytes);
}

void submitter_resume(const struct submitters *submitters, struct job *job)
{
    job->submitter = submitter_find(submitters, job->submitter_uid);
    job->charged = size_of(job->payload.size + (job->rare ? job->rare->ties_bytes : 0));
}

static void subtract(uint64_t *from, uint64_t n)
{
    *from = *from > n ? *from - n : 0;
}

void submitter_note(const struct job *job, bool waits)
{
    struct submitter *submitter = job->submitter;

    if (waits) {
        submitter->n_waiting++;
        submitter->bytes += job->charged;
    } else {
        subtract(&submitter->n_waiting, 1);
        subtract(&submitter->bytes, job->charged);
    }
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-unique.h"

#include "shared/base/cleanup.h"
#include <endian.h>
#include <string.h>

void unique_digest_begin(struct unique_digest *digest, const char *group)
{
    sha256_init(&digest->hash);
    unique_digest_add(digest, group, strlen(group) + 1);
}

struct unique_id unique_digest_end(struct unique_digest *digest)
{
    uint64_t words[2];

    sha256_digest(&digest->hash, sizeof(words), (uint8_t *)words);
    return (struct unique_id){.high = le64toh(words[0]),
                              .low = le64toh(words[1]) | 1}; /* never none */
}

struct unique_id unique_id_make(const char *group, const void *key, size_t size)
{
    struct unique_digest digest;

    unique_digest_begin(&digest, group);
    unique_digest_add(&digest, key, size);
    return unique_digest_end(&digest);
}

/* While the disk is slow, many jobs with the same key may be about to end at a time. The index has
 * an entry per role, so that a search for the holder does not walk through these. */
enum role {
    HOLDER,
    WAITING,
    GOING, /* about to end; does not hold the key */
};

static uint64_t index_key(const struct unique_id *id, enum role role)
{
    return id->low + role;
}

static void list_as(struct job_table *table, struct job_rare *rare, enum role role)
{
    rare->role = (uint8_t)role;
    index_add(&table->unique, &rare->by_unique, index_key(&rare->unique, role));
}

static void relist(struct job_table *table, struct job *job)
{
    struct job_rare *rare = job->rare;
    const enum role role = rare->holds ? HOLDER : unique_is_going(job) ? GOING : WAITING;

    if (role == rare->role)
        return;
    index_remove(&table->unique, &rare->by_unique);
    list_as(table, rare, role);
}

static struct job *find(const struct job_table *table, const struct unique_id *id, enum role role)
{
    index_for_each_entry (rare, &table->unique, index_key(id, role), struct job_rare, by_unique)
        if (rare->role == role && rare->unique.high == id->high && rare->unique.low == id->low)
            return rare->job;
    return NULL;
}

struct job *unique_holder(const struct job_table *table, const struct unique_id *id)
{
    return find(table, id, HOLDER);
}

struct job *unique_successor(const struct job_table *table, const struct unique_id *id)
{
    struct job *waiting = find(table, id, WAITING);

    return waiting ? waiting : find(table, id, GOING);
}

int unique_set(struct job *job, const struct unique_id *id)
{
    int r = unique_id_is_none(id) ? 0 : job_make_rare(job);

    if (r == 0 && job->rare)
        job->rare->unique = *id;
    return r;
}

void unique_join(struct job_table *table, struct job *job)
{
    struct job_rare *rare = job->rare;

    if (!rare || rare->listed || unique_id_is_none(&rare->unique))
        return;
    rare->holds = !unique_holder(table, &rare->unique);
    rare->listed = true;
    list_as(table, rare, rare->holds ? HOLDER : WAITING);
    relist(table, job);
}

void unique_yield(struct job_table *table, struct job *job)
{
    job->rare->holds = false;
    relist(table, job);
}

void unique_review(struct job_table *table, struct job *job)
{
    if (job_is_unique(job))
        relist(table, job);
}

struct job *unique_leave(struct job_table *table, struct job *job)
{
    struct job_rare *rare = job->rare;
    struct job *next;

    if (!job_is_unique(job))
        return NULL;
    index_remove(&table->unique, &rare->by_unique);
    rare->listed = false;
    next = rare->holds ? unique_successor(table, &rare->unique) : NULL;
    if (next) {
        next->rare->holds = true;
        relist(table, next);
    }
    return next;
}

void unique_replace(struct job_table *table, struct job *job, struct job *old)
{
    job->rare->replaces = job_ref(old);
    old->rare->replaced_by = job;
    unique_review(table, old);
}

struct job *unique_end_replacing(struct job_table *table, struct job *job)
{
    struct job *old = job->rare ? TAKE_PTR(job->rare->replaces) : NULL;

    if (!old)
        return NULL;
    if (old->rare->replaced_by == job) {
        old->rare->replaced_by = NULL;
        unique_review(table, old);
    }
    return old;
}

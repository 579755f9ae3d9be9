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

/* Returns a listed job with this key that holds it, or else one that waits for it; one that stays,
 * if there is any. */
static struct job *find(const struct job_table *table, const struct unique_id *id, bool holds)
{
    struct index_entry *entry = index_find(&table->unique, id->low);
    struct job *found = NULL;

    for (; entry; entry = index_find_next(entry)) {
        const struct job_rare *rare = list_entry(entry, struct job_rare, by_unique);

        if (rare->holds == holds && rare->unique.high == id->high && rare->unique.low == id->low &&
            (!found || unique_is_going(found)))
            found = rare->job;
    }
    return found;
}

struct job *unique_holder(const struct job_table *table, const struct unique_id *id)
{
    return find(table, id, true);
}

struct job *unique_successor(const struct job_table *table, const struct unique_id *id)
{
    return find(table, id, false);
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
    index_add(&table->unique, &rare->by_unique, rare->unique.low);
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
    if (next)
        next->rare->holds = true;
    return next;
}

void unique_replace(struct job *job, struct job *old)
{
    job->rare->replaces = job_ref(old);
    old->rare->replaced = true;
}

struct job *unique_replacement(const struct job_table *table, const struct job *job)
{
    const struct job_rare *rare = job->rare;
    struct index_entry *entry =
        rare->replaced ? index_find(&table->unique, rare->unique.low) : NULL;

    for (; entry; entry = index_find_next(entry))
        if (list_entry(entry, struct job_rare, by_unique)->replaces == job)
            return list_entry(entry, struct job_rare, by_unique)->job;
    return NULL;
}

struct job *unique_end_replacing(struct job *job)
{
    struct job *old = job->rare ? TAKE_PTR(job->rare->replaces) : NULL;

    if (old)
        old->rare->replaced = false;
    return old;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/toll.h"

#include <stddef.h>

/* Most calls take some microseconds. */
#define CALL_MAX (10 * USEC_PER_MSEC)
/* How long calls are measured exactly, and a long one is remembered. */
#define SUSPECTED_FOR (10 * USEC_PER_SEC)
/* So many long calls bar an owner: the kernel may have reclaimed memory in one. */
#define CALLS_MAX 3
/* An owner takes at most this part of the loop's time. */
#define BARRED_FACTOR 100
/* Further owners replace the one whose time is over first. */
#define OWNERS_MAX 64

struct debtor {
    uint64_t owner; /* 0 = free */
    unsigned n_calls;
    usec_t cost;  /* of these calls */
    usec_t until; /* when they are forgotten */
};

static usec_t exact_until;
static struct debtor debtors[OWNERS_MAX];

static usec_t clock_of(bool exact)
{
    return exact ? clock_cpu() : clock_now();
}

struct toll toll_begin(usec_t now)
{
    const bool exact = now < exact_until;

    return (struct toll){.exact = exact, .begun = clock_of(exact)};
}

static struct debtor *find(uint64_t owner)
{
    for (size_t i = 0; i < OWNERS_MAX; i++)
        if (debtors[i].owner == owner)
            return &debtors[i];
    return NULL;
}

static struct debtor *find_or_replace(uint64_t owner)
{
    struct debtor *debtor = find(owner), *first = &debtors[0];

    if (debtor)
        return debtor;
    for (size_t i = 1; i < OWNERS_MAX; i++)
        if (debtors[i].until < first->until)
            first = &debtors[i];
    *first = (struct debtor){.owner = owner};
    return first;
}

static enum toll_verdict charge(uint64_t owner, usec_t cost, usec_t now)
{
    struct debtor *debtor = find_or_replace(owner);

    if (debtor->until <= now)
        *debtor = (struct debtor){.owner = owner};
    debtor->cost += cost;
    if (++debtor->n_calls < CALLS_MAX) {
        debtor->until = usec_add(now, SUSPECTED_FOR);
        return TOLL_SUSPECT;
    }
    debtor->until = usec_add(now, debtor->cost * BARRED_FACTOR);
    return TOLL_BARRED;
}

enum toll_verdict toll_end(struct toll toll, usec_t now, uint64_t owner)
{
    const usec_t took = usec_sub(clock_of(toll.exact), toll.begun);

    if (took < CALL_MAX)
        return TOLL_FINE;
    exact_until = usec_add(now, SUSPECTED_FOR);
    return toll.exact && owner != 0 ? charge(owner, took, now) : TOLL_SUSPECT;
}

bool toll_bars(uint64_t owner, usec_t now)
{
    const struct debtor *debtor = owner != 0 ? find(owner) : NULL;

    return debtor && debtor->n_calls >= CALLS_MAX && now < debtor->until;
}

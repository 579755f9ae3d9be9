/* SPDX-License-Identifier: MIT */
#include "supervisor/store/ended-attempts.h"

#include <stdatomic.h>
#include <string.h>

static int64_t number_of(const struct ended_attempts *attempts, uint16_t index)
{
    return atomic_load_explicit(&attempts->kept[index].number, memory_order_relaxed);
}

/* Returns the place of the first earlier entry whose number is not below. */
static uint32_t find_place(const struct ended_attempts *attempts, int64_t number)
{
    uint32_t low = 0, high = attempts->n_earlier;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (number_of(attempts, attempts->earlier[middle]) < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void ended_attempts_put_back(struct ended_attempts *attempts, struct kept_attempt *entry)
{
    const uint16_t index = (uint16_t)(entry - attempts->kept);
    const uint32_t place = find_place(attempts, number_of(attempts, index));
    uint16_t *at = &attempts->earlier[place];

    memmove(at + 1, at, (attempts->n_earlier++ - place) * sizeof(*at));
    *at = index;
}

void ended_attempts_init(struct ended_attempts *attempts, struct kept_attempt *kept)
{
    attempts->kept = kept;
    attempts->n_free = attempts->n_earlier = 0;
    for (uint16_t i = KEPT_ATTEMPTS_MAX; kept && i-- > 0;) {
        if (number_of(attempts, i) != 0)
            ended_attempts_put_back(attempts, &kept[i]);
        else
            attempts->free[attempts->n_free++] = i;
    }
}

struct kept_attempt *ended_attempts_add(struct ended_attempts *attempts, int64_t number,
                                        uint32_t attempt, uint32_t n_failed)
{
    struct kept_attempt *entry;

    if (attempts->n_free == 0)
        return NULL;
    entry = &attempts->kept[attempts->free[--attempts->n_free]];
    entry->attempt = attempt;
    entry->n_failed = n_failed;
    /* Partner: the next supervisor, which finds the entry complete. */
    atomic_store_explicit(&entry->number, number, memory_order_release);
    return entry;
}

void ended_attempts_leave(struct ended_attempts *attempts, int64_t number, uint32_t attempt,
                          uint32_t n_failed)
{
    struct kept_attempt *entry = ended_attempts_add(attempts, number, attempt, n_failed);

    if (entry)
        ended_attempts_put_back(attempts, entry);
}

void ended_attempts_remove(struct ended_attempts *attempts, struct kept_attempt *entry)
{
    atomic_store_explicit(&entry->number, 0, memory_order_relaxed);
    attempts->free[attempts->n_free++] = (uint16_t)(entry - attempts->kept);
}

bool ended_attempts_has(const struct ended_attempts *attempts, int64_t number)
{
    const uint32_t place = find_place(attempts, number);

    return place < attempts->n_earlier && number_of(attempts, attempts->earlier[place]) == number;
}

struct kept_attempt *ended_attempts_take(struct ended_attempts *attempts, int64_t number)
{
    const uint32_t place = find_place(attempts, number);
    uint16_t *at = &attempts->earlier[place];
    struct kept_attempt *entry;

    if (!ended_attempts_has(attempts, number))
        return NULL;
    entry = &attempts->kept[*at];
    memmove(at, at + 1, (--attempts->n_earlier - place) * sizeof(*at));
    return entry;
}

/* Removes one of two entries of a job. An attempt has two if the supervisor ended between reading
 * its result and releasing the record: the next one has read that again. Returns the other one. */
static struct kept_attempt *join(struct ended_attempts *attempts, struct kept_attempt *a,
                                 struct kept_attempt *b)
{
    struct kept_attempt *last = a->attempt >= b->attempt ? a : b;
    struct kept_attempt *other = last == a ? b : a;

    if (last->n_failed < other->n_failed)
        last->n_failed = other->n_failed;
    ended_attempts_remove(attempts, other);
    return last;
}

struct kept_attempt *ended_attempts_join(struct ended_attempts *attempts, int64_t number,
                                         struct kept_attempt *mine, uint32_t before)
{
    struct kept_attempt *last = mine, *entry;

    while ((entry = ended_attempts_take(attempts, number))) {
        if (entry->attempt >= before)
            ended_attempts_remove(attempts, entry);
        else
            last = last ? join(attempts, last, entry) : entry;
    }
    return last;
}

void ended_attempts_settle(struct ended_attempts *attempts)
{
    while (attempts->n_earlier > 0)
        ended_attempts_remove(attempts, &attempts->kept[attempts->earlier[--attempts->n_earlier]]);
}

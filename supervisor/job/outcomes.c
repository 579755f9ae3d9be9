/* SPDX-License-Identifier: MIT */
#include "supervisor/job/outcomes.h"

#include "supervisor/succession/saved-row.h"

#define RECENT_MASK ((UINT32_C(1) << OUTCOMES_RECENT) - 1)

static void replace_oldest(struct outcomes *outcomes, bool dead)
{
    uint64_t *word = &outcomes->dead[outcomes->next / 64];
    const uint64_t bit = UINT64_C(1) << outcomes->next % 64;

    /* A place that was never used is 0. */
    outcomes->n_dead = (uint16_t)(outcomes->n_dead - ((*word & bit) != 0) + dead);
    *word = dead ? *word | bit : *word & ~bit;
    outcomes->next = (uint16_t)((outcomes->next + 1u) % OUTCOMES_MAX);
    if (outcomes->n < OUTCOMES_MAX)
        outcomes->n++;
}

void outcomes_note(struct outcomes *outcomes, bool dead, usec_t now)
{
    replace_oldest(outcomes, dead);
    outcomes->recent = (outcomes->recent << 1 | dead) & RECENT_MASK;
    if (dead && outcomes->since == 0)
        outcomes->since = now;
    else if (!dead && !outcomes_failing(outcomes))
        outcomes->since = 0;
}

static unsigned recent_dead(const struct outcomes *outcomes)
{
    return (unsigned)__builtin_popcount(outcomes->recent);
}

static unsigned recent_n(const struct outcomes *outcomes)
{
    return outcomes->n < OUTCOMES_RECENT ? outcomes->n : OUTCOMES_RECENT;
}

bool outcomes_failing(const struct outcomes *outcomes)
{
    unsigned dead = recent_dead(outcomes);

    return dead >= OUTCOMES_ENOUGH && dead * 2 >= recent_n(outcomes);
}

unsigned outcomes_count_dead(const struct outcomes *outcomes, unsigned *ret_n)
{
    if (outcomes_failing(outcomes) && outcomes->n_dead * 2u < outcomes->n) {
        *ret_n = recent_n(outcomes);
        return recent_dead(outcomes);
    }
    *ret_n = outcomes->n;
    return outcomes->n_dead;
}

static bool is_dead(const struct outcomes *outcomes, unsigned place)
{
    return outcomes->dead[place / 64] >> place % 64 & 1;
}

/* The dead ones by how many came after them. */
void outcomes_put(struct saved_writer *row, const struct outcomes *outcomes)
{
    const size_t fields = saved_begin(row);

    saved_put_number(row, outcomes->n);
    saved_put_number(row, outcomes->since);
    for (unsigned i = 0; outcomes->n_dead > 0 && i < outcomes->n; i++)
        if (is_dead(outcomes, (outcomes->next + OUTCOMES_MAX - 1 - i) % OUTCOMES_MAX))
            saved_put_number(row, i);
    saved_end(row, fields);
}

void outcomes_get(struct saved_reader *row, struct outcomes *ret)
{
    struct saved_reader fields = saved_get_fields(row);

    *ret = (struct outcomes){.n = (uint16_t)saved_get_below(&fields, OUTCOMES_MAX)};
    ret->since = saved_get_number(&fields);
    ret->next = (uint16_t)(ret->n % OUTCOMES_MAX);
    while (saved_has_more(&fields) && ret->n > 0) {
        const unsigned i = (unsigned)saved_get_below(&fields, ret->n - 1u);
        const unsigned place = ret->n - 1u - i;

        if (is_dead(ret, place))
            continue;
        ret->dead[place / 64] |= UINT64_C(1) << place % 64;
        ret->n_dead++;
        if (i < OUTCOMES_RECENT)
            ret->recent |= UINT32_C(1) << i;
    }
}

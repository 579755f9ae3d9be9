/* SPDX-License-Identifier: MIT */
#include "supervisor/job/outcomes.h"

#include "supervisor/succession/record.h"

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

#define ROW outcomes
#define OUTCOMES_FIELDS(F)                                                                         \
    F(UPGRADE, dead, ARRAY(dead))                                                                  \
    F(UPGRADE, n, BELOW(n, OUTCOMES_MAX))                                                          \
    F(UPGRADE, next, BELOW(next, OUTCOMES_MAX - 1))                                                \
    F(UPGRADE, n_dead, BELOW(n_dead, OUTCOMES_MAX))                                                \
    F(UPGRADE, recent, BELOW(recent, RECENT_MASK))                                                 \
    F(UPGRADE, since, NUMBER(since))
static const struct field FIELDS[] = {OUTCOMES_FIELDS(FIELD)};
const struct record OUTCOMES_RECORD = RECORD("outcomes", FIELDS);

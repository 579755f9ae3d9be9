/* SPDX-License-Identifier: MIT */
#include "supervisor/job/outcomes.h"

#include "supervisor/succession/record.h"

#define MASK ((UINT32_C(1) << OUTCOMES_MAX) - 1)

void outcomes_note(struct outcomes *outcomes, bool dead, usec_t now)
{
    outcomes->dead = (outcomes->dead << 1 | dead) & MASK;
    if (outcomes->n < OUTCOMES_MAX)
        outcomes->n++;
    if (dead && outcomes->since == 0)
        outcomes->since = now;
    else if (!dead && !outcomes_failing(outcomes))
        outcomes->since = 0;
}

unsigned outcomes_count_dead(const struct outcomes *outcomes)
{
    return (unsigned)__builtin_popcount(outcomes->dead);
}

bool outcomes_failing(const struct outcomes *outcomes)
{
    const unsigned dead = outcomes_count_dead(outcomes);

    return dead >= OUTCOMES_ENOUGH && dead * 2 >= outcomes->n;
}

#define ROW outcomes
#define OUTCOMES_FIELDS(F)                                                                         \
    F(UPGRADE, dead, BELOW(dead, MASK))                                                            \
    F(UPGRADE, n, BELOW(n, OUTCOMES_MAX))                                                          \
    F(UPGRADE, since, NUMBER(since))
const struct record OUTCOMES_RECORD = RECORD("outcomes", OUTCOMES_FIELDS);

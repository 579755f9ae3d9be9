/* SPDX-License-Identifier: MIT */
#pragma once

/* Counts slots by traits: of a pool, of a group, of all. Each change of a slot updates the counts,
 * so nothing walks all slots. */

#include <stdbool.h>
#include <stddef.h>

enum census_trait {
    CENSUS_SLOT, /* every slot */
    CENSUS_DOWN,
    CENSUS_PLACE, /* within its pool's size: others are about to go */
    CENSUS_EMPTY, /* such a place whose worker is down */
    CENSUS_FAILED,
    CENSUS_TROUBLE, /* failed, failing, in backoff, or starting again after a start time-out */
    CENSUS_MEMBER,  /* of its pool, as all below; unless it is about to go and down */
    CENSUS_UP,
    CENSUS_WANTED,    /* also while it stops to start again */
    CENSUS_UNWANTED,  /* stopped by itself, and not retired */
    CENSUS_UNDECIDED, /* wanted, and neither up nor failed yet */
    _CENSUS_N_TRAITS,
};

#define CENSUS_BIT(trait) (1u << (trait))

struct census {
    size_t n[_CENSUS_N_TRAITS];
    struct census *parent; /* includes this one; NULL = none */
};

/* Counts a change of a slot's traits, also in all parents. Sets of CENSUS_BIT(); 0 = no slot. */
static inline void census_move(struct census *census, unsigned before, unsigned after)
{
    for (; census; census = census->parent)
        for (unsigned i = 0; i < _CENSUS_N_TRAITS; i++) {
            census->n[i] += after >> i & 1;
            census->n[i] -= before >> i & 1;
        }
}

/* Whether all slots are stopped or failed. */
static inline bool census_down(const struct census *census)
{
    return census->n[CENSUS_DOWN] == census->n[CENSUS_SLOT];
}

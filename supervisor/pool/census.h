/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Counts slots by what they are: of a pool, of a group, of all. Each change of a slot updates the
 * counts, so nothing ever walks all slots.
 */

#include <stdbool.h>
#include <stddef.h>

enum census_trait {
    CENSUS_SLOT, /* every one */
    CENSUS_DOWN,
    CENSUS_FAILED,
    CENSUS_TROUBLE, /* failed, in backoff, or starting again because it did not become ready */
    CENSUS_MEMBER,  /* has a place in its pool; those below are among them */
    CENSUS_UP,
    CENSUS_WANTED,    /* also: stops to be started again */
    CENSUS_UNWANTED,  /* stays down, or is going down, while its place stays */
    CENSUS_UNDECIDED, /* is to come up, and has neither done so nor been seen to fail */
    _CENSUS_N_TRAITS,
};

#define CENSUS_BIT(trait) (1u << (trait))

struct census {
    size_t n[_CENSUS_N_TRAITS];
    struct census *parent; /* includes this one; NULL = none */
};

/* A slot's traits changed, here and in all parents: sets of CENSUS_BIT(), 0 = it is not there. */
void census_move(struct census *census, unsigned before, unsigned after);

/* Adds or subtracts all that `part` counts; parents stay as they are. */
void census_add(struct census *census, const struct census *part);
void census_subtract(struct census *census, const struct census *part);

/* None has a process: all are stopped or failed. */
bool census_down(const struct census *census);

/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/census.h"

void census_move(struct census *census, unsigned before, unsigned after)
{
    for (; census; census = census->parent)
        for (unsigned i = 0; i < _CENSUS_N_TRAITS; i++) {
            census->n[i] += after >> i & 1;
            census->n[i] -= before >> i & 1;
        }
}

void census_add(struct census *census, const struct census *part)
{
    for (unsigned i = 0; i < _CENSUS_N_TRAITS; i++)
        census->n[i] += part->n[i];
}

void census_subtract(struct census *census, const struct census *part)
{
    for (unsigned i = 0; i < _CENSUS_N_TRAITS; i++)
        census->n[i] -= part->n[i];
}

bool census_down(const struct census *census)
{
    return census->n[CENSUS_DOWN] == census->n[CENSUS_SLOT];
}

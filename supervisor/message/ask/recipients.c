/* SPDX-License-Identifier: MIT */
#include "supervisor/message/ask/recipients.h"

#include "shared/base/hash.h"
#include <errno.h>
#include <stdlib.h>

#define PLACES_MIN 8u

/* Returns the place where it is, or would be inserted. */
static uint32_t recipients_find(const struct recipients *recipients, uint64_t reference)
{
    uint32_t i = (uint32_t)hash_mix(reference) & (recipients->n_places - 1);

    while (recipients->places[i] != 0 && recipients->places[i] != reference)
        i = (i + 1) & (recipients->n_places - 1);
    return i;
}

int recipients_reserve(struct recipients **recipients, uint32_t n)
{
    struct recipients *before = *recipients, *after;
    const uint64_t wanted = 2 * ((uint64_t)n + (before ? before->n : 0));
    uint32_t n_places = before ? before->n_places : PLACES_MIN;

    if (before && wanted <= n_places)
        return 0;
    while (n_places < wanted && n_places <= UINT32_MAX / 2)
        n_places *= 2;
    if (n_places < wanted)
        return -ENOMEM;
    after = calloc(1, sizeof(*after) + n_places * sizeof(after->places[0]));
    if (!after)
        return -ENOMEM;
    after->n_places = n_places;
    for (uint32_t i = 0; before && i < before->n_places; i++)
        if (before->places[i] != 0)
            after->places[recipients_find(after, before->places[i])] = before->places[i];
    after->n = before ? before->n : 0;
    free(before);
    *recipients = after;
    return 0;
}

int recipients_add(struct recipients **recipients, uint64_t reference)
{
    uint32_t i;
    int r;

    if (recipients_has(*recipients, reference))
        return 0;
    r = recipients_reserve(recipients, 1);
    if (r < 0)
        return r;
    i = recipients_find(*recipients, reference);
    (*recipients)->places[i] = reference;
    (*recipients)->n++;
    return 0;
}

bool recipients_has(const struct recipients *recipients, uint64_t reference)
{
    return recipients && reference != 0 &&
           recipients->places[recipients_find(recipients, reference)] == reference;
}

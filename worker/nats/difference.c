/* SPDX-License-Identifier: MIT */
#include "worker/nats/difference.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NSEC_PER_SEC 1e9

void difference_text(struct difference *difference, const char *name, const char *have,
                     const char *wanted)
{
    char *end = difference->text + difference->length;
    const size_t room = sizeof(difference->text) - difference->length;
    size_t length;

    have = have && *have != '\0' ? have : "none";
    if (strcmp(have, wanted) == 0)
        return;
    length = (size_t)snprintf(end, room, "%s%s %s, not %s", difference->length > 0 ? "; " : "",
                              name, have, wanted);
    difference->length += length < room ? length : room - 1;
}

void difference_number(struct difference *difference, const char *name, int64_t have,
                       int64_t wanted)
{
    char texts[2][24];

    (void)snprintf(texts[0], sizeof(texts[0]), "%" PRId64, have);
    (void)snprintf(texts[1], sizeof(texts[1]), "%" PRId64, wanted);
    difference_text(difference, name, texts[0], texts[1]);
}

void difference_time(struct difference *difference, const char *name, int64_t have, int64_t wanted)
{
    char texts[2][32];

    (void)snprintf(texts[0], sizeof(texts[0]), "%.12gs", (double)have / NSEC_PER_SEC);
    (void)snprintf(texts[1], sizeof(texts[1]), "%.12gs", (double)wanted / NSEC_PER_SEC);
    difference_text(difference, name, texts[0], texts[1]);
}

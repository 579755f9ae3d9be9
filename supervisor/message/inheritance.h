/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What an upgrade has saved of the last supervisor's actors, until they are made again by their
 * names. They get the same references, which workers, clients and saved rows go on using. What is
 * left at the end has gone for good: its reference finds nothing, and is not used again.
 */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/message/actor.h"
#include <stdbool.h>
#include <stdint.h>

#define INHERITED_NAME_MAX 1024 /* with the NUL */

/* An actor as it is saved. */
struct actor_row {
    const char *name;
    uint64_t reference;
    bool standby;  /* has the name of its place */
    bool needed;   /* something waits for it: it is to be made if it is not there */
    bool exchange; /* a group of its name is another actor */
    struct actor_counters counters;
};

extern const struct record ACTOR_RECORD;

struct inherited_actor {
    struct list link;
    struct list needed_link; /* in inheritance.needed */
    struct index_entry by_name;
    struct actor_row row; /* its name is the following */
    char name[];
};

struct inheritance {
    struct list actors;
    struct list needed;
    struct index by_name;
};

void inheritance_init(struct inheritance *inheritance);
void inheritance_deinit(struct inheritance *inheritance);

/* Copies an actor. Returns 0 or -ENOMEM. */
int inheritance_add(struct inheritance *inheritance, const struct actor_row *row);
/* Takes out the actor of this name, its standby only if that alone is left; the caller frees it.
 * NULL = there is none. */
struct inherited_actor *inheritance_take(struct inheritance *inheritance, const char *name);
/* Finds an actor that is needed, and has been neither taken nor found before. Copies its name;
 * false = there is none. */
bool inheritance_next_needed(struct inheritance *inheritance, char ret[INHERITED_NAME_MAX]);
/* Takes out any; NULL = none is left. */
struct inherited_actor *inheritance_take_any(struct inheritance *inheritance);

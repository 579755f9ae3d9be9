/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which function handles messages of a type: a table by dotted type, in which a message finds its
 * own type or else its nearest ancestor. The empty type is the ancestor of all.
 */

#include "worker/troupe-actor.h"
#include <stddef.h>

struct handler {
    char *type;
    size_t length;
    troupe_message_fn fn;
    void *userdata;
};

struct handlers {
    struct handler *entries; /* sorted */
    size_t count, room;
};

/* Sets, replaces or, with a NULL `fn`, takes away. -EINVAL for a malformed type, -ENOMEM. */
int handlers_set(struct handlers *handlers, const char *type, troupe_message_fn fn, void *userdata);

/* The nearest, or NULL. Valid until the next handlers_set(). */
const struct handler *handlers_find(const struct handlers *handlers, const char *type);

void handlers_deinit(struct handlers *handlers);

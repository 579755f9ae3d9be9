/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Table of message handlers by dotted type. A message is handled for its own type, or else for its
 * nearest ancestor. The empty type is the ancestor of all.
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
    struct handler *entries;
    size_t count;
};

/* Sets or replaces a handler; `fn` NULL removes it. Returns 0, -EINVAL for a malformed type, or
 * -ENOMEM. */
int handlers_set(struct handlers *handlers, const char *type, troupe_message_fn fn, void *userdata);

/* Returns the nearest handler, or NULL. Valid until the next handlers_set(). */
const struct handler *handlers_find(const struct handlers *handlers, const char *type);

void handlers_deinit(struct handlers *handlers);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A text that survives a crash in several states of kept-state.h, such as a group's configuration.
 * It is read as it was written, or not at all: its head has a digest.
 */

#include "supervisor/process/kept-state.h"

#define KEPT_TEXT_MAX ((size_t)64 << 10) /* bytes; a longer text is not kept */

/* Embedded in the owner; zeroed = none. */
struct kept_text {
    struct kept_state **states;
    size_t n;
};

/* Replaces the text with a copy of `size` bytes; without room or memory, none is kept. Its states
 * are named NAME:0, NAME:1 and so on. */
void kept_text_set(struct kept_text *text, struct kept_states *states, const char *name,
                   const char *bytes, size_t size);
/* Forgets the text, unless the next supervisor is to find it (kept_states.for_next). Idempotent. */
void kept_text_deinit(struct kept_text *text, struct kept_states *states);

enum {
    _KEPT_TEXT_E_SUCCESS,
    KEPT_TEXT_E_NONE,
};
/* Whether the state is the first one of a text whose name has less than `size` bytes: copies that.
 */
bool kept_text_is_first(const struct kept_state *state, char *name, size_t size);
/* Reads the text that the last supervisor kept. Call it before kept_text_set(). Returns 0 with
 * `*ret`, NUL-terminated and owned by the caller, KEPT_TEXT_E_NONE, or -ENOMEM. */
int kept_text_read(const struct kept_states *states, const char *name, char **ret,
                   size_t *ret_size);

/* SPDX-License-Identifier: MIT */
#include "supervisor/process/kept-text.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Precedes the text in the first state. A change must raise KEPT_STATES_VERSION. */
struct text_head {
    uint64_t size;
    uint64_t digest;
};

#define FIRST (KEPT_DATA_MAX - sizeof(struct text_head)) /* bytes of text in the first state */

static size_t count_states(size_t size)
{
    return size <= FIRST ? 1 : 1 + (size - FIRST + KEPT_DATA_MAX - 1) / KEPT_DATA_MAX;
}

static void name_part(char name[KEPT_NAME_MAX + 1], const char *of, size_t part)
{
    (void)snprintf(name, KEPT_NAME_MAX + 1, "%s:%zu", of, part);
}

/* Returns the place of the text in a state, and in `*ret_size` how much of `left` bytes fits. */
static uint8_t *place_of(struct kept_state *state, size_t part, size_t left, size_t *ret_size)
{
    const size_t head = part == 0 ? sizeof(struct text_head) : 0, room = KEPT_DATA_MAX - head;

    *ret_size = left < room ? left : room;
    return state->data + head;
}

/* Opens or frees states until there are `n`. Returns 0 or -ENOMEM. */
static int resize(struct kept_text *text, struct kept_states *states, const char *name, size_t n)
{
    char part[KEPT_NAME_MAX + 1];
    struct kept_state **grown;
    bool found;

    while (text->n > n)
        kept_state_free(states, text->states[--text->n]);
    grown = n == 0 ? NULL : reallocarray(text->states, n, sizeof(struct kept_state *));
    if (!grown)
        return n == 0 ? 0 : -ENOMEM;
    text->states = grown;
    for (; text->n < n; text->n++) {
        name_part(part, name, text->n);
        grown[text->n] = kept_state_open(states, part, &found);
        if (!grown[text->n])
            return -ENOMEM;
    }
    return 0;
}

void kept_text_set(struct kept_text *text, struct kept_states *states, const char *name,
                   const char *bytes, size_t size)
{
    const struct text_head head = {size, digest_bytes(DIGEST_NONE, bytes, size)};
    size_t done = 0, n;

    if (size > KEPT_TEXT_MAX || resize(text, states, name, count_states(size)) < 0) {
        kept_text_deinit(text, states);
        return;
    }
    memcpy(text->states[0]->data, &head, sizeof(head));
    for (size_t i = 0; i < text->n; i++, done += n) {
        uint8_t *place = place_of(text->states[i], i, size - done, &n);

        memcpy(place, bytes + done, n);
    }
}

void kept_text_deinit(struct kept_text *text, struct kept_states *states)
{
    while (text->n > 0)
        kept_state_free(states, text->states[--text->n]);
    free(TAKE_PTR(text->states));
}

bool kept_text_is_first(const struct kept_state *state, char *name, size_t size)
{
    const char *colon = strchr(state->name, ':');

    return colon && colon > state->name && strcmp(colon, ":0") == 0 &&
           snprintf(name, size, "%.*s", (int)(colon - state->name), state->name) < (int)size;
}

int kept_text_read(const struct kept_states *states, const char *name, char **ret, size_t *ret_size)
{
    char part[KEPT_NAME_MAX + 1];
    _cleanup_free_ char *bytes = NULL;
    struct kept_state *state;
    struct text_head head;
    size_t done = 0, n;

    name_part(part, name, 0);
    state = kept_state_find(states, part);
    if (!state)
        return KEPT_TEXT_E_NONE;
    memcpy(&head, state->data, sizeof(head));
    if (head.size > KEPT_TEXT_MAX)
        return KEPT_TEXT_E_NONE;
    bytes = malloc(head.size + 1);
    if (!bytes)
        return -ENOMEM;
    for (size_t i = 0; state; i++) {
        const uint8_t *place = place_of(state, i, head.size - done, &n);

        memcpy(bytes + done, place, n);
        done += n;
        name_part(part, name, i + 1);
        state = done < head.size ? kept_state_find(states, part) : NULL;
    }
    if (done < head.size || digest_bytes(DIGEST_NONE, bytes, done) != head.digest)
        return KEPT_TEXT_E_NONE;
    bytes[done] = '\0';
    *ret = TAKE_PTR(bytes);
    *ret_size = done;
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/process/kept-state.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

struct kept_memory {
    uint32_t version;
    uint32_t n_used; /* states from this index on were never used */
    _Alignas(4096) struct kept_attempt attempts[KEPT_ATTEMPTS_MAX];
};

struct kept_chunk {
    _Alignas(4096) struct kept_state states[KEPT_CHUNK];
    struct capture_memory outputs[KEPT_CHUNK];
};

#define FIRST_CHUNK sizeof(struct kept_memory)
#define MEMORY_SIZE (FIRST_CHUNK + KEPT_STATES_MAX / KEPT_CHUNK * sizeof(struct kept_chunk))

/* Returns NULL with errno set on failure. */
static void *map(int fd, size_t offset, size_t size)
{
    void *start =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);

    return start == MAP_FAILED ? NULL : start;
}

static void unmap(struct kept_states *states)
{
    while (states->n_chunks > 0)
        (void)munmap(states->chunks[--states->n_chunks], sizeof(struct kept_chunk));
    if (states->memory)
        (void)munmap(TAKE_PTR(states->memory), sizeof(struct kept_memory));
}

static int map_memory(struct kept_states *states, int fd)
{
    states->memory = map(fd, 0, sizeof(struct kept_memory));
    states->fd = fd;
    return states->memory ? 0 : -errno;
}

/* Maps as many chunks as `n` states take. Returns 0 or -errno. */
static int map_states(struct kept_states *states, uint32_t n)
{
    while (states->n_chunks * KEPT_CHUNK < n) {
        const size_t offset = FIRST_CHUNK + states->n_chunks * sizeof(struct kept_chunk);
        struct kept_chunk *chunk = map(states->fd, offset, sizeof(*chunk));

        if (!chunk)
            return -errno;
        states->chunks[states->n_chunks++] = chunk;
    }
    return 0;
}

static struct kept_state *state_at(const struct kept_states *states, uint32_t index)
{
    return &states->chunks[index / KEPT_CHUNK]->states[index % KEPT_CHUNK];
}

static struct capture_memory *output_at(const struct kept_states *states, uint32_t index)
{
    return &states->chunks[index / KEPT_CHUNK]->outputs[index % KEPT_CHUNK];
}

size_t kept_states_size(void)
{
    return MEMORY_SIZE;
}

int kept_states_init(struct kept_states *states)
{
    _cleanup_close_ int fd = memfd_create("trouped-state", MFD_CLOEXEC);
    int r;

    if (fd < 0 || ftruncate(fd, MEMORY_SIZE) < 0)
        return -errno;
    r = map_memory(states, fd);
    if (r < 0)
        return r;
    states->memory->version = KEPT_STATES_VERSION;
    (void)TAKE_FD(fd);
    return 0;
}

static uint64_t key_of(const char *name)
{
    return hash_bytes(name, strlen(name));
}

static void expect(struct kept_states *states, uint32_t index, uint64_t key)
{
    index_add(&states->earlier, &states->entries[index], key);
    states->waiting[index] = true;
}

static void take_out(struct kept_states *states, uint32_t index)
{
    index_remove(&states->earlier, &states->entries[index]);
    states->waiting[index] = false;
}

/* Lists the last supervisor's states, and the free ones between them. */
static void list_earlier(struct kept_states *states)
{
    for (uint32_t i = 0; i < states->memory->n_used; i++) {
        const char *name = state_at(states, i)->name;

        if (*name != '\0' && memchr(name, '\0', KEPT_NAME_MAX + 1))
            expect(states, i, key_of(name));
        else
            states->free[states->n_free++] = i;
    }
}

int kept_states_adopt(struct kept_states *states, int fd)
{
    struct stat stat;
    int r;

    if (fstat(fd, &stat) < 0)
        return -errno;
    if (stat.st_size != MEMORY_SIZE)
        return -EINVAL;
    r = map_memory(states, fd);
    if (r < 0)
        return r;
    if (states->memory->version != KEPT_STATES_VERSION || states->memory->n_used > KEPT_STATES_MAX)
        r = -EINVAL;
    else
        r = map_states(states, states->memory->n_used);
    if (r < 0)
        unmap(states);
    else
        list_earlier(states);
    return r;
}

void kept_states_deinit(struct kept_states *states)
{
    if (!states->memory)
        return;
    for (uint32_t i = 0; states->earlier.n_entries > 0; i++)
        if (states->waiting[i])
            take_out(states, i);
    index_deinit(&states->earlier);
    unmap(states);
    states->fd = close_fd(states->fd);
}

/* Returns the last supervisor's state of this name without opening it, or NULL. */
static struct kept_state *kept_state_find(const struct kept_states *states, const char *name)
{
    struct index_entry *entry = index_find(&states->earlier, key_of(name));

    for (; entry; entry = index_find_next(entry)) {
        const uint32_t index = (uint32_t)(entry - states->entries);
        struct kept_state *state = state_at(states, index);

        if (strcmp(state->name, name) == 0) {
            state->index = index;
            return state;
        }
    }
    return NULL;
}

/* Zeroes what an earlier use has left. */
static struct kept_state *use_again(struct kept_states *states)
{
    const uint32_t index = states->free[--states->n_free];
    struct kept_state *state = state_at(states, index);

    memset(state, 0, sizeof(*state));
    capture_forget(output_at(states, index));
    state->index = index;
    return state;
}

static struct kept_state *use_next(struct kept_states *states)
{
    const uint32_t index = states->memory->n_used;
    struct kept_state *state;

    if (index == KEPT_STATES_MAX || map_states(states, index + 1) < 0)
        return NULL;
    state = state_at(states, index);
    state->index = index;
    states->memory->n_used++;
    return state;
}

struct kept_state *kept_state_open(struct kept_states *states, const char *name, bool *ret_found)
{
    struct kept_state *state;

    *ret_found = false;
    if (!states->memory || strlen(name) > KEPT_NAME_MAX)
        return NULL;
    state = kept_state_find(states, name);
    if (state) {
        take_out(states, state->index);
        *ret_found = true;
        return state;
    }
    state = states->n_free > 0 ? use_again(states) : use_next(states);
    if (state)
        (void)stpcpy(state->name, name);
    return state;
}

struct kept_state *kept_states_next(const struct kept_states *states, uint32_t *cursor)
{
    while (states->earlier.n_entries > 0 && *cursor < states->memory->n_used) {
        const uint32_t index = (*cursor)++;

        if (states->waiting[index])
            return state_at(states, index);
    }
    return NULL;
}

static void forget(struct kept_states *states, uint32_t index)
{
    state_at(states, index)->name[0] = '\0';
    states->free[states->n_free++] = index;
}

void kept_state_free(struct kept_states *states, struct kept_state *state)
{
    if (state && !states->for_next)
        forget(states, state->index);
}

void kept_states_settle(struct kept_states *states)
{
    for (uint32_t i = 0; states->earlier.n_entries > 0; i++) {
        if (!states->waiting[i])
            continue;
        take_out(states, i);
        forget(states, i);
    }
}

struct kept_attempt *kept_states_attempts(const struct kept_states *states)
{
    return states->memory ? states->memory->attempts : NULL;
}

struct capture_memory *kept_state_output(const struct kept_states *states,
                                         const struct kept_state *state)
{
    return state ? output_at(states, state->index) : NULL;
}

/* ---- texts ---- */

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

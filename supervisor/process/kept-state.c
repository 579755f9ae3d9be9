/* SPDX-License-Identifier: MIT */
#include "supervisor/process/kept-state.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include <errno.h>
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

/* Takes out the last supervisor's state of this name. Returns NULL if there is none. */
static struct kept_state *take_earlier(struct kept_states *states, const char *name)
{
    struct index_entry *entry = index_find(&states->earlier, key_of(name));

    for (; entry; entry = index_find_next(entry)) {
        const uint32_t index = (uint32_t)(entry - states->entries);
        struct kept_state *state = state_at(states, index);

        if (strcmp(state->name, name) == 0) {
            state->index = index;
            take_out(states, index);
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
    state = take_earlier(states, name);
    *ret_found = state;
    if (state)
        return state;
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

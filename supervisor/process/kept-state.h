/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * State that outlives the supervisor: a table in shared memory, whose descriptor the keeper holds.
 * The supervisor updates it by plain stores, so it is right at whatever instruction the supervisor
 * dies. The next supervisor finds a state by its name, and checks what it reads: damaged memory may
 * be what ended the last one.
 */

#include "shared/base/index.h"
#include "supervisor/process/capture.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEPT_STATES_MAX 65536
#define KEPT_CHUNK      256 /* states that are mapped together */
#define KEPT_NAME_MAX   159 /* bytes, without the NUL */
#define KEPT_DATA_MAX   344
/* The version of the layout, with the data of all owners. Raise it with every change: states of
 * another version are not read, and its workers end. */
#define KEPT_STATES_VERSION 9

/* In the shared memory. */
struct kept_state {
    char name[KEPT_NAME_MAX + 1]; /* "" = free */
    uint32_t index;               /* in the table; right while the state is open */
    uint32_t started_with;        /* of a slot: config_group.process_digest of the last process
                                     that was started in it; 0 = not known, as before 1.1 */
    _Alignas(8) uint8_t data[KEPT_DATA_MAX];
};

/* Keeps the end of a durable job's attempt: see store/ended-attempts.h. */
struct kept_attempt {
    _Atomic int64_t number; /* of the job's row; 0 = free */
    uint32_t attempt;
    uint32_t n_failed; /* the job's attempts that have failed with this one */
};

#define KEPT_ATTEMPTS_MAX 4096

struct kept_memory;
struct kept_chunk;

/* Valid when zeroed: without memory, nothing is kept. The kernel backs only the pages in use; only
 * chunks in use take address space, which LimitAS= may bound. */
struct kept_states {
    int fd; /* valid if there is memory */
    struct kept_memory *memory;
    uint32_t n_chunks; /* mapped */
    bool for_next;     /* nothing is forgotten: this supervisor may fail to start */
    struct kept_chunk *chunks[KEPT_STATES_MAX / KEPT_CHUNK];
    struct index earlier; /* the last supervisor's states that are not opened yet */
    uint32_t n_free;
    uint32_t free[KEPT_STATES_MAX];
    struct index_entry entries[KEPT_STATES_MAX]; /* in `earlier` */
    bool waiting[KEPT_STATES_MAX];               /* is in `earlier` */
};

/* Returns the size of the file in memory, in bytes. Most of its pages are never used. */
size_t kept_states_size(void);

/* Makes new memory. Returns 0 or -errno. */
int kept_states_init(struct kept_states *states);
/* Uses the last supervisor's memory. Takes over `fd` only on success. Returns 0, -EINVAL if this is
 * no such memory, or -errno. */
int kept_states_adopt(struct kept_states *states, int fd);
/* Forgets nothing: a supervisor that fails to start leaves all states to the next one. */
void kept_states_deinit(struct kept_states *states);

/* Returns the last supervisor's state of this name, with `*ret_found` set, or a zeroed one. NULL if
 * there is no room or address space, or the name is too long. A name must be open once only. */
struct kept_state *kept_state_open(struct kept_states *states, const char *name, bool *ret_found);
/* Iterates over the last supervisor's states that are not opened yet; NULL at the end. `cursor`
 * starts at 0. They may be opened during that. */
struct kept_state *kept_states_next(const struct kept_states *states, uint32_t *cursor);
/* Forgets a state. NULL allowed. */
void kept_state_free(struct kept_states *states, struct kept_state *state);
/* Forgets the last supervisor's states that were not opened. */
void kept_states_settle(struct kept_states *states);

/* Returns KEPT_ATTEMPTS_MAX entries, as the last supervisor has left them; NULL without memory. */
struct kept_attempt *kept_states_attempts(const struct kept_states *states);

/* Returns the memory for the output of a process; NULL without a state. It occupies nothing before
 * it is used. */
struct capture_memory *kept_state_output(const struct kept_states *states,
                                         const struct kept_state *state);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A group: one kind of worker, as configured by one file. Without keys it has one cell, which lives
 * as long as the group; with Cells=by-key it has one for each key in use, found in a table.
 */

#include "supervisor/config/config.h"
#include "supervisor/group/cell/cell-submit.h"
#include "supervisor/group/cell/cell-table.h"
#include "supervisor/group/cell/cell.h"
#include "supervisor/group/group-fault.h"
#include "supervisor/group/order.h"
#include "supervisor/job/job-ids.h"
#include "supervisor/job/kept-results.h"
#include <stdbool.h>
#include <stdint.h>

struct actor;

/* The last dead job. */
struct group_dead {
    struct protocol_id id;
    usec_t at;                     /* realtime; 0 = there was none */
    char reason[DEATH_DETAIL_MAX]; /* may quote its worker */
};

struct group {
    const struct group_context *context;
    const struct cell_handler *cell_handler;
    struct config_group *config; /* owned */
    const char *name;            /* config->name */
    uint64_t reference;          /* index and generation in the registry */
    struct cell_table cells;
    struct actor *actor; /* with Cells=by-key: hands on by routing key; else NULL */
    uint8_t message_log; /* enum actor_log: what new actors are to log */
    struct cell *cell;   /* the only one of a group without keys; NULL with Cells=by-key */
    size_t size;         /* of the pool of every cell that has no size of its own */
    struct kept_results results;
    struct job_counts counts;
    struct job_history history; /* with Cells=by-key */
    struct group_dead last_dead;
    struct pool_set pools;     /* what those of its cells share */
    struct census retiring;    /* of slots in cells that retire */
    struct list pending_link;  /* in the registry, while pending */
    struct list removed_link;  /* in the registry, while removed */
    struct list down_link;     /* in the registry: went down while everything stops */
    struct group_fault *fault; /* a configuration that cannot be used here; NULL = none */
    bool wanted;               /* new slots are to run */
    bool pending;              /* to be started once the groups of its After= have come up */
    bool paused;               /* new cells are paused */
    const char *closed;        /* as of a cell */
    struct job_ids cut_off;    /* jobs that a close has ended with their attempt */
    bool drained;              /* removed, and without jobs: only its slots are still to stop */
    bool removed;              /* drains: accepts nothing, and goes away once all is down */
    struct order_node order;
};

/* Takes `config` over on success. 0, -ENOMEM, or -errno of getrandom(2). */
int group_new(struct group **ret, const struct group_context *context, struct config_group *config);
struct group *group_free(struct group *group);

void group_start(struct group *group);
/* Queued jobs stay queued. */
void group_stop(struct group *group, bool hurry);
void group_restart(struct group *group);
void group_reset(struct group *group);
void group_pause(struct group *group);
void group_resume(struct group *group);
/* This cell alone. 0 or -ENOMEM (of one that retires, and comes back for it). */
int group_pause_cell(struct cell *cell);
void group_resume_cell(struct cell *cell);
/* As cell_close(), of every cell there is and will be, and logs which jobs that concerns; and back.
 */
void group_close(struct group *group, const char *why);
void group_reopen(struct group *group);

#define GROUP_SIZE_MAX 4096
enum {
    _GROUP_E_SUCCESS,
    GROUP_E_BAD_SIZE, /* not within 1 … GROUP_SIZE_MAX */
};
/* Every cell, also those to come. 0, GROUP_E_BAD_SIZE or -ENOMEM, and nothing has changed. */
int group_resize(struct group *group, int64_t size);
/* This cell alone, until its group is resized. */
int group_resize_cell(struct cell *cell, int64_t size);

/*
 * A new configuration for the same name: policies at once, size by resizing, another program by
 * rolling the pool: slot by slot, each replacement ready before the old one stops. Takes `config`
 * over. 0 or -errno (the old one stays).
 */
int group_reconfigure(struct group *group, struct config_group *config);

/* For all actors of a group, those to come too: bits of enum actor_log. */
void group_set_message_log(struct group *group, uint8_t what);

/* Some of its workers still run the program of before, since a new one did not come up. */
bool group_is_behind(const struct group *group);

/* Returns the name of its state: see state.h. */
const char *group_state(const struct group *group);
/* Running or paused. */
bool group_is_well(const struct group *group);

/* Returns the history of its jobs, in all cells. */
const struct job_history *group_history(const struct group *group);

/* To be started once the groups of its After= have come up; or no longer. */
void group_set_pending(struct group *group, bool pending);

/* Drains it: no new job, what it has ends, then its slots stop; the group is down at last. */
void group_remove(struct group *group);

/* Every slot has come up once or has been seen to fail, or is not wanted; and the group is not
 * pending. */
bool group_decided(const struct group *group);

/* It is wanted again. */
void group_restore(struct group *group);

/* No slot has a process: all are stopped or failed. */
bool group_down(const struct group *group);

/* While everything stops: if the group is down, puts it into the registry's list of those. */
void group_note_down(struct group *group);

/* ---- its cells: group-cell.c ---- */

bool group_is_keyed(const struct group *group);

/* All cells, the oldest first; the body may not make or free any. */
struct cell *group_next_cell(const struct group *group, const struct cell *cell);
#define group_each_cell(cell, group)                                                               \
    for (struct cell *cell = group_next_cell((group), NULL); cell;                                 \
         cell = group_next_cell((group), cell))

/* NULL if there is none now. `key` need not be terminated; it is "" in a group without keys. */
struct cell *group_find_cell(const struct group *group, const char *key, size_t size);

/*
 * As cell_submit(), to the cell that the request's key picks, which is made or called back if need
 * be. Without Cells=by-key a key is nothing but the job's.
 */
int group_submit(struct group *group, const struct cell_request *request,
                 void (*changed)(struct job_waiter *, struct job *), void *owner, uint64_t cookie,
                 struct job **ret);

/*
 * The cell for a message with that routing key (NULL = none), made or called back if need be. 0,
 * CELL_E_*, or -ENOMEM.
 */
int group_take_cell(struct group *group, const char *key, size_t size, struct cell **ret);

/* SPDX-License-Identifier: MIT */
#pragma once

/* A group: the workers that one file configures. It has one cell, or with Cells=by-key one for each
 * key in use. */

#include "supervisor/config/config.h"
#include "supervisor/event/latency.h"
#include "supervisor/group/cell/cell-limit.h"
#include "supervisor/group/cell/cell-submit.h"
#include "supervisor/group/cell/cell-table.h"
#include "supervisor/group/cell/cell.h"
#include "supervisor/group/group-close.h"
#include "supervisor/group/group-command.h"
#include "supervisor/group/group-fault.h"
#include "supervisor/group/order.h"
#include "supervisor/job/job-id-log.h"
#include "supervisor/job/job-stream.h"
#include "supervisor/job/kept-results.h"
#include "supervisor/job/submitter.h"
#include "supervisor/process/holding.h"
#include "supervisor/process/kept-state.h"
#include "supervisor/process/pressure.h"
#include <stdbool.h>
#include <stdint.h>

struct actor;
struct history;

struct group_dead {
    struct protocol_id id;
    usec_t at;                     /* realtime; 0 = none */
    char reason[DEATH_DETAIL_MAX]; /* may quote its worker */
};

/* Whether the group's durable jobs on disk have been read. */
enum group_rows {
    GROUP_UNREAD,
    GROUP_BEING_READ,
    GROUP_READ,
};

/* What keeps elastic pools from growing. */
struct group_pressure {
    struct pressure_watch watches[_PRESSURE_N_KINDS];
    enum pressure_kind kind; /* the last one */
    usec_t rate;             /* in each second */
    usec_t since, until;     /* monotonic; 0 = none yet */
    unsigned n_reliefs;      /* see struct elastic_view */
};

/* How far the group is drained for maintenance. */
enum group_drain {
    GROUP_OPEN,
    GROUP_DRAINS,     /* accepts no job until it is resumed */
    GROUP_WORKED_OFF, /* likewise, and hands out no job any more: nothing runs */
};

/* A walk over the cells of a group that counts jobs in hand by their keys: group-limits.c. */
struct group_count {
    struct loop_deferred turn;
    struct list_cursor cells; /* the next one; not in a list = there is no walk */
    size_t slot;              /* in that cell: pool_next_slot() */
    uint64_t n_counted;       /* limits.n_counted when the last walk ended */
};

enum group_removal {
    GROUP_STAYS,
    GROUP_REMOVED, /* accepts no job; freed once all is down */
    GROUP_OVER,    /* likewise, and its last job has ended */
};

struct group {
    const struct group_context *context;
    const struct cell_handler *cell_handler;
    struct config_group *config; /* owned */
    char *name;
    uint64_t reference; /* in the registry */
    struct index_entry reference_entry, user_entry;
    struct cell_table cells;
    struct actor *actor; /* with Cells=by-key: forwards by routing key; else NULL */
    uint8_t message_log; /* enum actor_log, for new actors */
    struct cell *cell;   /* NULL with Cells=by-key */
    size_t size;         /* of cells without a size of their own, or that begin */
    struct kept_results results;
    struct history *past; /* keeps its ended jobs; NULL = they are not kept */
    struct job_streams streams;
    struct submitters submitters;
    struct limits limits;
    struct group_count count;
    struct job_counts counts;
    struct job_samples samples;
    struct job_history history; /* with Cells=by-key */
    struct histogram wait; /* of jobs that a worker ended: from acceptance to the last attempt */
    struct histogram run;  /* of their last attempt */
    struct group_dead last_dead;
    struct pool_set pools;
    struct group_pressure pressure;    /* on elastic pools */
    uint64_t n_wanted;                 /* workers, of its elastic pools */
    struct budget budget;              /* of PoolMax=, with Cells=by-key */
    struct list pending_link;          /* in the registry, until those of its After= have come up */
    struct list removed_link;          /* in the registry, while removed */
    struct list down_link;             /* in the registry, at shutdown */
    struct group_fault *fault;         /* NULL = none */
    struct kept_state *kept;           /* for the next supervisor; NULL = nothing is kept */
    uint64_t generations;              /* of pool_set, if nothing is kept */
    struct spawner_client text_client; /* of text_holding */
    struct holding text_holding;       /* its configuration, for the next supervisor */
    bool resumes;                      /* `kept` is the last supervisor's */
    bool wanted;                       /* new slots are started */
    enum cell_pause pause;             /* of cells without one of their own */
    const char *closed;                /* why none of its cells takes a job; NULL = open */
    struct group_closing closing;
    struct cell_commands commands;
    struct group_visits visits;
    struct job_id_log cut_off; /* jobs that are not retried because of a close */
    enum group_rows rows;
    int64_t new_from;   /* the number of the first durable job of this run; 0 = not known yet */
    unsigned n_returns; /* how often it was removed and came back */
    int64_t back_from;  /* like new_from, but after the last return; 0 = its jobs have been read */
    bool reads_again;   /* while rows are read: those of cells that have left theirs */
    enum group_drain drain;
    enum group_removal removal;
    struct order_node order;
};

/* Takes `config` over on success. Returns 0 or -errno. */
int group_new(struct group **ret, const struct group_context *context, struct config_group *config);
struct group *group_free(struct group *group);
/* Frees what a group that is over has, as much as may go in one turn: keyed cells and kept results.
 * Returns whether nothing is left. */
bool group_clear(struct group *group);

void group_start(struct group *group);
/* Jobs stay queued. */
void group_stop(struct group *group, bool hurry);
void group_restart(struct group *group);
/* Its workers that stop get this time for it. */
void group_stop_within(struct group *group, usec_t time);
/* Its limits were changed at run time. */
void group_review_limits(struct group *group);
/* The limits of one of its keys were changed at run time. */
void group_review_key_limits(struct group *group);
/* The limits that were set in earlier runs are known, or if not `read`, cannot be read soon. */
void group_know_limits(struct group *group, bool read);
void group_reset(struct group *group);
void group_set_paused(struct group *group, bool paused);
/* Safe mode begins or ends: pauses the group unless it is paused, and resumes it unless it
 * has been paused or resumed in between. */
void group_hold_back(struct group *group, bool held_back);
/* Accepts no new job (CELL_E_DRAINING). Once no job is queued or running it hands out none until
 * group_end_drain(). Idempotent. */
void group_drain(struct group *group);
void group_end_drain(struct group *group);
/* Called when a job has ended, and whenever jobs are not handed out any more. */
void group_review_drain(struct group *group);
/* Whether its durable jobs are being read from disk, or will be after those of other groups.
 * Inline: cells also ask, and they call no function of their group. */
static inline bool group_awaits_restore(const struct group *group)
{
    return group->rows == GROUP_BEING_READ ||
           (group->rows == GROUP_UNREAD && group->removal != GROUP_OVER &&
            group->context->durable->restores);
}
/* Whether there may be jobs on disk that are not counted yet. */
bool group_is_unread(const struct group *group);
/* Pauses or resumes this cell alone. A cell that retires is called back. Returns 0 or -ENOMEM. */
int group_set_cell_paused(struct cell *cell, bool paused);
/* Closes every cell there is and will be: accepts and retries no job, and cancels those that are
 * not running, in several turns. Logs the jobs concerned. `why` is static. */
void group_close(struct group *group, const char *why);
/* Why no job of the cell is accepted, begun or retried; NULL = it is open. Inline: see
 * group_awaits_restore(). */
static inline const char *group_cell_closed(const struct cell *cell)
{
    return cell->group->closed ? cell->group->closed : cell->closed;
}
/* Undoes group_close(); jobs that it has ended stay so. */
void group_reopen(struct group *group);

#define GROUP_SIZE_MAX 4096
enum {
    _GROUP_E_SUCCESS,
    GROUP_E_BAD_SIZE, /* not within 1 … GROUP_SIZE_MAX */
    GROUP_E_ELASTIC,  /* its size follows its work */
};
/* Resizes every cell, also those to come. Returns 0; GROUP_E_* or -ENOMEM change nothing. */
int group_resize(struct group *group, int64_t size);
/* Resizes this cell alone, until its group is resized. */
int group_resize_cell(struct cell *cell, int64_t size);

/* Takes a new configuration over: policies apply immediately, and another program rolls the pools
 * (see pool_roll()). Returns 0, or -errno with the old configuration in place. */
int group_reconfigure(struct group *group, struct config_group *config);

/* Sets what all actors of the group log, also those to come: bits of enum actor_log. */
void group_set_message_log(struct group *group, uint8_t what);

/* Whether some workers still run the old program, since a new one did not come up. */
bool group_is_behind(const struct group *group);
/* Whether some cells have not carried out all commands to the group yet: group-command.h. */
static inline bool group_is_visited(const struct group *group)
{
    return list_linked(&group->visits.link);
}

/* Returns the number of its User=; UINT64_MAX = there is none. */
static inline uint64_t group_user(const struct group *group)
{
    return group->config->user ? group->config->uid : UINT64_MAX;
}
/* Called after its User= may have changed. */
void group_note_user(struct group *group);

/* Returns the name of its state: see state.h. */
const char *group_state(const struct group *group);
/* Why its durable jobs cannot be written; NULL = they can, or it has none. */
const char *group_store_problem(const struct group *group);
/* Whether senders wait until the store of its durable jobs is open. Inline: see
 * group_awaits_restore(). */
static inline bool group_store_is_opening(const struct group *group)
{
    const struct store *store = group->context->durable->store;

    return group->config->durable && store && store_state(store) == STORE_OPENING;
}
/* The store is open, or cannot be opened: the senders try again. */
void group_call_senders(struct group *group);
/* Running or paused. */
bool group_is_well(const struct group *group);

/* Returns the history of its jobs, in all cells. */
const struct job_history *group_history(const struct group *group);

static inline bool group_is_pending(const struct group *group)
{
    return list_linked(&group->pending_link);
}
/* A pending group starts once the groups of its After= have come up. */
void group_set_pending(struct group *group, bool pending);
/* Makes the group pending, unless it stays stopped. */
void group_enlist(struct group *group);
/* Whether it stays stopped when the supervisor starts, until it is started on request. */
bool group_stays_stopped(const struct group *group);
/* Called when group_stays_stopped() may have changed: stops the group if it stays stopped. */
void group_review_stop(struct group *group);

/* Accepts no new job; once the last one has ended the slots stop, and the group is down. */
void group_remove(struct group *group);
/* Undoes group_remove(). */
void group_restore(struct group *group);

/* Whether the group is not pending and every wanted slot has come up once or failed. */
bool group_decided(const struct group *group);

/* Whether all slots are stopped or failed. */
bool group_down(const struct group *group);
/* At shutdown: adds a group that is down to the registry's list of those. */
void group_note_down(struct group *group);

/* ---- its cells: group-cell.c ---- */

bool group_is_keyed(const struct group *group);

/* All cells, the oldest first; the body must not make or free cells. */
struct cell *group_next_cell(const struct group *group, const struct cell *cell);
#define group_each_cell(cell, group)                                                               \
    for (struct cell *cell = group_next_cell((group), NULL); cell;                                 \
         cell = group_next_cell((group), cell))

/* Returns NULL if there is none. `key` need not be terminated; "" in a group without keys. */
struct cell *group_find_cell(const struct group *group, const char *key, size_t size);
/* Finds or makes the cell with this key, whatever CellsMax= says. Returns NULL when out of memory,
 * and for a key that cannot name a cell. */
struct cell *group_restore_cell(struct group *group, const char *key, size_t size);

/* As cell_submit(), to the cell of the request's key, which is made or called back if necessary. */
int group_submit(struct group *group, const struct cell_request *request, struct job **ret);

/* Finds or makes the cell of the request's key (NULL = none), like group_submit(), for a message.
 * Only its key and submitter count. Returns 0, CELL_E_*, or -ENOMEM. */
int group_take_cell(struct group *group, const struct cell_request *request, struct cell **ret);
/* Like group_take_cell(), but for a job of this size that moves, if the cell admits it. */
int group_take_room(struct group *group, const struct cell_request *request, struct cell **ret);

/* Whether it accepts jobs at all: 0 or CELL_E_*. */
int group_takes_jobs(const struct group *group);
/* Moves a job that waits to another group. Returns 0, CELL_E_*, or -ENOMEM. */
int group_move_job(struct group *to, struct job *job);

/* ---- all groups, after the last supervisor: resume.c ---- */

/* Continues all groups where the last supervisor stopped. Each worker that has outlived it is
 * adopted, whether it is still wanted or not; then the ordinary rules continue: a pool that is too
 * large shrinks, a group that no file describes is removed. */
void groups_resume(const struct group_context *context);
/* Removes the groups that no file describes. The last supervisor's jobs that are not on disk have
 * been restored. */
void groups_remove_missing(const struct group_context *context);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between keeper.c (start, signals, turns), keeper-requests.c (the channel to
 * the supervisor), keeper-deaths.c (children and orphans) and keeper-restart.c (from one supervisor
 * to the next).
 */

#include "shared/base/clock.h"
#include "supervisor/keeper/children.h"
#include "supervisor/keeper/holdings.h"
#include "supervisor/keeper/message.h"
#include "supervisor/keeper/pump.h"
#include "supervisor/keeper/relay.h"
#include "supervisor/keeper/supervisor-process.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How many ends to remember of processes that were not held: a HOLD may be in the channel. */
#define KEEPER_ENDS 64

struct keeper_end {
    uint64_t id; /* 0 = none */
    struct spawn_exit how;
};

struct keeper {
    struct program *program;
    int notify_fd; /* of each supervisor; -errno of relay_open() */
    int channel;   /* -1 = the supervisor has closed it */
    int signals;
    pid_t supervisor;      /* 0 = none runs */
    bool ready;            /* a supervisor has been ready once */
    bool stopping;         /* was asked to; a crash is then also the end */
    pid_t stopper;         /* the process that asked; 0 = not known */
    bool ending;           /* everything is killed */
    int status;            /* of the supervisor; once `ending` */
    usec_t due_at;         /* without a supervisor: when to start one; else, with `upgrading`, when
                              to give it up; USEC_INFINITY = never */
    usec_t alive_at;       /* when to serve the watchdog next, while no supervisor does */
    usec_t end_by;         /* when to give up waiting for the rest; once `ending` */
    bool deaths_due;       /* there may be children to reap */
    usec_t orphans_at;     /* when to search for orphans; USEC_INFINITY = no need */
    int children_fd;       /* the kernel's list of children, or -1 */
    bool orphans_searched; /* a search is running */
    bool orphans_left;     /* the last search killed some; their children become orphans in turn */
    bool reply_waits;      /* `reply` could not be sent yet */
    bool reply_later;      /* after ENOBUFS: poll() does not report when to send again */
    int reply_fd;          /* the pidfd sent with `reply`, or -1 */
    bool handing_over;     /* HELD messages are due, from `next_held` on */
    uint32_t next_held;
    struct crashes crashes;
    bool upgrading; /* the supervisor is the new one, and not ready yet */
    uint32_t n_upgrades, n_failed_upgrades;
    struct relay relay;
    struct children *children;
    struct left_pumps left;
    struct holdings *holdings;
    struct keeper_end ends[KEEPER_ENDS]; /* of processes of this supervisor */
    unsigned next_end;
    size_t n_unheld;  /* processes that were killed as a supervisor ended, and are not reaped: the
                       * next supervisor starts after them, ... */
    usec_t unheld_by; /* ... or at this time */
    struct message request, reply;
    struct message_spawn spawn;
};

extern struct keeper keeper;

/* ---- keeper-requests.c ---- */

/* Sends the reply that waits. While one waits, nothing is reaped and no request is read: the kernel
 * queues them. */
void keeper_flush_reply(void);
void keeper_reply_exited(uint64_t id, const struct spawn_exit *how);
/* Sends HELD and HELD_END. No request is read and nothing is reaped before all is handed over. */
void keeper_hand_over(void);
/* Returns whether there may be more requests. */
bool keeper_take_request(void);
/* Takes all requests, until one is answered by a reply that waits. */
void keeper_take_requests(void);

/* ---- keeper-deaths.c ---- */

/* Plans a search for orphans. */
void keeper_expect_orphans(void);
/* Begins the search when it is due, and continues a running one: kills some of the orphans. */
void keeper_end_orphans(void);
/* Sets whether the child's descendants are spared when it ends. Removes an ended child that is no
 * longer spared, and plans a search for its orphans. */
void keeper_spare(struct child *child, bool spared);
/* Returns how a process ended that is not held; `unknown` if that is forgotten. */
struct spawn_exit keeper_end_of(uint64_t id);
/* Returns whether a child was reaped. The supervisor hears of the death before the child is reaped;
 * its next request is handled after that. */
bool keeper_reap_one(void);

/* Begins to list all children, orphans or not, as the kernel does not report when a process is
 * orphaned. Returns false if there is no list (no CONFIG_PROC_CHILDREN, no /proc): orphans are then
 * reaped, but not killed. */
bool keeper_begin_children(void);
/* Calls `fn` with the pids of the next few hundred children. Returns whether there may be more. */
bool keeper_next_children(void (*fn)(pid_t pid));

/* ---- keeper-restart.c ---- */

/* Returns 0 or -errno, logged. */
int keeper_start_supervisor(void);
void keeper_supervisor_ended(const struct spawn_exit *how);
void keeper_supervisor_ready(void);
/* Starts the next supervisor when it is due, and gives up one that an upgrade has started and that
 * does not become ready. */
void keeper_restart_supervisor(void);
/* Returns when to call that. */
usec_t keeper_restart_due(void);
/* Kills everything. */
void keeper_end_all(void);

/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/slot/lifecycle.h"
#include <stdbool.h>
#include <stddef.h>

enum {
    NOTHING = 0,
    RESET = LIFECYCLE_ACTION_RESET,
    CANCEL_RESTART = LIFECYCLE_ACTION_CANCEL_RESTART,
    SPAWN = LIFECYCLE_ACTION_SPAWN,
    ANNOUNCE = LIFECYCLE_ACTION_ANNOUNCE,
    WITHDRAW = LIFECYCLE_ACTION_WITHDRAW,
    SEND_STOP = LIFECYCLE_ACTION_SEND_STOP,
    TERMINATE = LIFECYCLE_ACTION_TERMINATE,
    ABORT = LIFECYCLE_ACTION_ABORT,
    KILL = LIFECYCLE_ACTION_KILL,
    REAP = LIFECYCLE_ACTION_REAP,
    SCHEDULE = LIFECYCLE_ACTION_SCHEDULE,
    DOWN = LIFECYCLE_ACTION_DOWN,
};

struct entry {
    struct lifecycle_transition next;
    bool listed; /* otherwise the state ignores the event */
};

#define ON(event, to, what) [LIFECYCLE_EVENT_##event] = {{LIFECYCLE_##to, (what)}, true}

/* clang-format off */
static const struct entry table[_LIFECYCLE_N_STATES][_LIFECYCLE_N_EVENTS] = {
    [LIFECYCLE_STOPPED] = {
        ON(START, STARTING, SPAWN),
        ON(ADOPTED, STARTING, NOTHING),
        ON(RESET, STOPPED, RESET),
    },
    [LIFECYCLE_STARTING] = {
        ON(SPAWN_FAILED, BACKOFF, SCHEDULE),
        ON(READY, IDLE, ANNOUNCE),
        ON(START_TIMEOUT, KILLING, TERMINATE),
        ON(VIOLATION, KILLING, KILL),
        ON(TERMINATED, KILLING, TERMINATE),
        ON(STOP, KILLING, TERMINATE),
        ON(EXITED, BACKOFF, REAP | SCHEDULE),
        ON(RESET, STARTING, RESET),
    },
    [LIFECYCLE_IDLE] = {
        ON(JOB_ASSIGNED, BUSY, NOTHING),
        ON(WATCHDOG, KILLING, WITHDRAW | ABORT),
        ON(VIOLATION, KILLING, WITHDRAW | KILL),
        ON(LOST, KILLING, WITHDRAW),
        ON(TERMINATED, KILLING, WITHDRAW | TERMINATE),
        ON(STOP, STOPPING, WITHDRAW | SEND_STOP),
        ON(EXITED, BACKOFF, WITHDRAW | REAP | SCHEDULE),
        ON(RESET, IDLE, RESET),
    },
    [LIFECYCLE_BUSY] = {
        /* A stop waits for the job in hand. */
        ON(JOB_ENDED, IDLE, ANNOUNCE),
        ON(JOB_TIMEOUT, KILLING, WITHDRAW | TERMINATE),
        ON(WATCHDOG, KILLING, WITHDRAW | ABORT),
        ON(VIOLATION, KILLING, WITHDRAW | KILL),
        ON(LOST, KILLING, WITHDRAW),
        ON(TERMINATED, KILLING, WITHDRAW | TERMINATE),
        ON(STOP, STOPPING, WITHDRAW),
        ON(EXITED, BACKOFF, WITHDRAW | REAP | SCHEDULE),
        ON(RESET, BUSY, RESET),
    },
    [LIFECYCLE_STOPPING] = {
        ON(JOB_ENDED, STOPPING, SEND_STOP),
        ON(JOB_TIMEOUT, KILLING, TERMINATE),
        ON(WATCHDOG, KILLING, ABORT),
        ON(VIOLATION, KILLING, KILL),
        ON(TERMINATED, KILLING, TERMINATE),
        ON(STOP_TIMEOUT, KILLING, TERMINATE),
        ON(EXITED, STOPPED, REAP | DOWN),
        ON(RESET, STOPPING, RESET),
    },
    [LIFECYCLE_KILLING] = {
        /* ACTION_SCHEDULE of a slot that is not wanted is answered by NOT_WANTED: it ends in stopped. */
        ON(SPAWN_FAILED, BACKOFF, SCHEDULE),
        ON(VIOLATION, KILLING, KILL),
        ON(STOP_TIMEOUT, KILLING, KILL),
        ON(EXITED, BACKOFF, REAP | SCHEDULE),
        ON(RESET, KILLING, RESET),
    },
    [LIFECYCLE_BACKOFF] = {
        ON(STOP, STOPPED, CANCEL_RESTART | DOWN),
        ON(RESTART_OVER, STARTING, SPAWN),
        ON(LIMIT_HIT, FAILED, NOTHING),
        ON(NOT_WANTED, STOPPED, DOWN),
        ON(RESET, STARTING, RESET | CANCEL_RESTART | SPAWN),
    },
    [LIFECYCLE_FAILED] = {
        ON(START, STARTING, RESET | SPAWN),
        ON(STOP, STOPPED, DOWN),
        ON(RESET, STARTING, RESET | SPAWN),
    },
};
/* clang-format on */

_Static_assert(_LIFECYCLE_N_STATES == 8, "a new state needs a row and a name");
_Static_assert(_LIFECYCLE_N_EVENTS == 19, "a new event needs a place in the rows and a name");

struct lifecycle_transition lifecycle_next(enum lifecycle_state state, enum lifecycle_event event)
{
    const struct entry *entry = &table[state][event];

    return entry->listed ? entry->next : (struct lifecycle_transition){state, LIFECYCLE_IGNORED};
}

const char *lifecycle_state_to_string(enum lifecycle_state state)
{
    static const char *const names[_LIFECYCLE_N_STATES] = {
        [LIFECYCLE_STOPPED] = "stopped",   [LIFECYCLE_STARTING] = "starting",
        [LIFECYCLE_IDLE] = "idle",         [LIFECYCLE_BUSY] = "busy",
        [LIFECYCLE_STOPPING] = "stopping", [LIFECYCLE_KILLING] = "killing",
        [LIFECYCLE_BACKOFF] = "backoff",   [LIFECYCLE_FAILED] = "failed",
    };
    return (size_t)state < _LIFECYCLE_N_STATES ? names[state] : "unknown";
}

const char *lifecycle_event_to_string(enum lifecycle_event event)
{
    static const char *const names[_LIFECYCLE_N_EVENTS] = {
        [LIFECYCLE_EVENT_START] = "start",
        [LIFECYCLE_EVENT_ADOPTED] = "adopted",
        [LIFECYCLE_EVENT_SPAWN_FAILED] = "spawn-failed",
        [LIFECYCLE_EVENT_READY] = "ready",
        [LIFECYCLE_EVENT_START_TIMEOUT] = "start-timeout",
        [LIFECYCLE_EVENT_JOB_ASSIGNED] = "job-assigned",
        [LIFECYCLE_EVENT_JOB_ENDED] = "job-ended",
        [LIFECYCLE_EVENT_JOB_TIMEOUT] = "job-timeout",
        [LIFECYCLE_EVENT_WATCHDOG] = "watchdog",
        [LIFECYCLE_EVENT_VIOLATION] = "violation",
        [LIFECYCLE_EVENT_LOST] = "lost",
        [LIFECYCLE_EVENT_TERMINATED] = "terminated",
        [LIFECYCLE_EVENT_STOP] = "stop",
        [LIFECYCLE_EVENT_STOP_TIMEOUT] = "stop-timeout",
        [LIFECYCLE_EVENT_EXITED] = "exited",
        [LIFECYCLE_EVENT_RESTART_OVER] = "restart-over",
        [LIFECYCLE_EVENT_LIMIT_HIT] = "limit-hit",
        [LIFECYCLE_EVENT_NOT_WANTED] = "not-wanted",
        [LIFECYCLE_EVENT_RESET] = "reset",
    };
    return (size_t)event < _LIFECYCLE_N_EVENTS ? names[event] : "unknown";
}

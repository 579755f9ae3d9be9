/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/slot/lifecycle.h"
#include <stddef.h>

/* Short names, so that a row of the table reads as a sentence. */
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

#define GO(to, what)                                                                               \
    {                                                                                              \
        .state = LIFECYCLE_##to, .actions = (what)                                                 \
    }
#define STAY(in)                                                                                   \
    {                                                                                              \
        .state = LIFECYCLE_##in, .actions = LIFECYCLE_IGNORED                                      \
    }

/*
 * Every pair is listed. One that was forgotten would read as "go to stopped and do nothing", which
 * is in no row, since whoever waits for a slot to be down is always told (ACTION_DOWN): the unit
 * test finds it.
 */
/* clang-format off */
static const struct lifecycle_transition table[_LIFECYCLE_N_STATES][_LIFECYCLE_N_EVENTS] = {
    [LIFECYCLE_STOPPED] = {
        [LIFECYCLE_EVENT_START]           = GO(STARTING, SPAWN),
        [LIFECYCLE_EVENT_SPAWN_FAILED]    = STAY(STOPPED),
        [LIFECYCLE_EVENT_READY]           = STAY(STOPPED),
        [LIFECYCLE_EVENT_START_TIMEOUT]   = STAY(STOPPED),
        [LIFECYCLE_EVENT_JOB_ASSIGNED]    = STAY(STOPPED),
        [LIFECYCLE_EVENT_JOB_ENDED]       = STAY(STOPPED),
        [LIFECYCLE_EVENT_JOB_TIMEOUT]     = STAY(STOPPED),
        [LIFECYCLE_EVENT_WATCHDOG]        = STAY(STOPPED),
        [LIFECYCLE_EVENT_VIOLATION]       = STAY(STOPPED),
        [LIFECYCLE_EVENT_LOST]            = STAY(STOPPED),
        [LIFECYCLE_EVENT_TERMINATED]       = STAY(STOPPED),
        [LIFECYCLE_EVENT_STOP]            = STAY(STOPPED),
        [LIFECYCLE_EVENT_STOP_TIMEOUT]    = STAY(STOPPED),
        [LIFECYCLE_EVENT_EXITED]          = STAY(STOPPED),
        [LIFECYCLE_EVENT_RESTART_OVER]    = STAY(STOPPED),
        [LIFECYCLE_EVENT_LIMIT_HIT]       = STAY(STOPPED),
        [LIFECYCLE_EVENT_NOT_WANTED]      = STAY(STOPPED),
        [LIFECYCLE_EVENT_RESET]           = GO(STOPPED, RESET),
    },
    [LIFECYCLE_STARTING] = {
        [LIFECYCLE_EVENT_START]           = STAY(STARTING),
        [LIFECYCLE_EVENT_SPAWN_FAILED]    = GO(BACKOFF, SCHEDULE),
        [LIFECYCLE_EVENT_READY]           = GO(IDLE, ANNOUNCE),
        [LIFECYCLE_EVENT_START_TIMEOUT]   = GO(KILLING, TERMINATE),
        [LIFECYCLE_EVENT_JOB_ASSIGNED]    = STAY(STARTING),
        [LIFECYCLE_EVENT_JOB_ENDED]       = STAY(STARTING),
        [LIFECYCLE_EVENT_JOB_TIMEOUT]     = STAY(STARTING),
        [LIFECYCLE_EVENT_WATCHDOG]        = STAY(STARTING),
        [LIFECYCLE_EVENT_VIOLATION]       = GO(KILLING, KILL),
        [LIFECYCLE_EVENT_LOST]            = STAY(STARTING),
        [LIFECYCLE_EVENT_TERMINATED]       = GO(KILLING, TERMINATE),
        [LIFECYCLE_EVENT_STOP]            = GO(KILLING, TERMINATE),
        [LIFECYCLE_EVENT_STOP_TIMEOUT]    = STAY(STARTING),
        [LIFECYCLE_EVENT_EXITED]          = GO(BACKOFF, REAP | SCHEDULE),
        [LIFECYCLE_EVENT_RESTART_OVER]    = STAY(STARTING),
        [LIFECYCLE_EVENT_LIMIT_HIT]       = STAY(STARTING),
        [LIFECYCLE_EVENT_NOT_WANTED]      = STAY(STARTING),
        [LIFECYCLE_EVENT_RESET]           = GO(STARTING, RESET),
    },
    [LIFECYCLE_IDLE] = {
        [LIFECYCLE_EVENT_START]           = STAY(IDLE),
        [LIFECYCLE_EVENT_SPAWN_FAILED]    = STAY(IDLE),
        [LIFECYCLE_EVENT_READY]           = STAY(IDLE),
        [LIFECYCLE_EVENT_START_TIMEOUT]   = STAY(IDLE),
        [LIFECYCLE_EVENT_JOB_ASSIGNED]    = GO(BUSY, NOTHING),
        [LIFECYCLE_EVENT_JOB_ENDED]       = STAY(IDLE),
        [LIFECYCLE_EVENT_JOB_TIMEOUT]     = STAY(IDLE),
        [LIFECYCLE_EVENT_WATCHDOG]        = GO(KILLING, WITHDRAW | ABORT),
        [LIFECYCLE_EVENT_VIOLATION]       = GO(KILLING, WITHDRAW | KILL),
        [LIFECYCLE_EVENT_LOST]            = GO(KILLING, WITHDRAW | KILL),
        [LIFECYCLE_EVENT_TERMINATED]       = GO(KILLING, WITHDRAW | TERMINATE),
        [LIFECYCLE_EVENT_STOP]            = GO(STOPPING, WITHDRAW | SEND_STOP),
        [LIFECYCLE_EVENT_STOP_TIMEOUT]    = STAY(IDLE),
        [LIFECYCLE_EVENT_EXITED]          = GO(BACKOFF, WITHDRAW | REAP | SCHEDULE),
        [LIFECYCLE_EVENT_RESTART_OVER]    = STAY(IDLE),
        [LIFECYCLE_EVENT_LIMIT_HIT]       = STAY(IDLE),
        [LIFECYCLE_EVENT_NOT_WANTED]      = STAY(IDLE),
        [LIFECYCLE_EVENT_RESET]           = GO(IDLE, RESET),
    },
    [LIFECYCLE_BUSY] = {
        /* The job in hand is finished first; only then the stop ladder begins (or its clock runs out).
         * With Prefetch= it may still be available. */
        [LIFECYCLE_EVENT_START]           = STAY(BUSY),
        [LIFECYCLE_EVENT_SPAWN_FAILED]    = STAY(BUSY),
        [LIFECYCLE_EVENT_READY]           = STAY(BUSY),
        [LIFECYCLE_EVENT_START_TIMEOUT]   = STAY(BUSY),
        [LIFECYCLE_EVENT_JOB_ASSIGNED]    = GO(BUSY, NOTHING),
        [LIFECYCLE_EVENT_JOB_ENDED]       = GO(IDLE, ANNOUNCE),
        [LIFECYCLE_EVENT_JOB_TIMEOUT]     = GO(KILLING, WITHDRAW | TERMINATE),
        [LIFECYCLE_EVENT_WATCHDOG]        = GO(KILLING, WITHDRAW | ABORT),
        [LIFECYCLE_EVENT_VIOLATION]       = GO(KILLING, WITHDRAW | KILL),
        [LIFECYCLE_EVENT_LOST]            = GO(KILLING, WITHDRAW | KILL),
        [LIFECYCLE_EVENT_TERMINATED]       = GO(KILLING, WITHDRAW | TERMINATE),
        [LIFECYCLE_EVENT_STOP]            = GO(STOPPING, WITHDRAW),
        [LIFECYCLE_EVENT_STOP_TIMEOUT]    = STAY(BUSY),
        [LIFECYCLE_EVENT_EXITED]          = GO(BACKOFF, WITHDRAW | REAP | SCHEDULE),
        [LIFECYCLE_EVENT_RESTART_OVER]    = STAY(BUSY),
        [LIFECYCLE_EVENT_LIMIT_HIT]       = STAY(BUSY),
        [LIFECYCLE_EVENT_NOT_WANTED]      = STAY(BUSY),
        [LIFECYCLE_EVENT_RESET]           = GO(BUSY, RESET),
    },
    [LIFECYCLE_STOPPING] = {
        [LIFECYCLE_EVENT_START]           = STAY(STOPPING),
        [LIFECYCLE_EVENT_SPAWN_FAILED]    = STAY(STOPPING),
        [LIFECYCLE_EVENT_READY]           = STAY(STOPPING),
        [LIFECYCLE_EVENT_START_TIMEOUT]   = STAY(STOPPING),
        [LIFECYCLE_EVENT_JOB_ASSIGNED]    = STAY(STOPPING),
        [LIFECYCLE_EVENT_JOB_ENDED]       = GO(STOPPING, SEND_STOP),
        [LIFECYCLE_EVENT_JOB_TIMEOUT]     = GO(KILLING, TERMINATE),
        [LIFECYCLE_EVENT_WATCHDOG]        = GO(KILLING, ABORT),
        [LIFECYCLE_EVENT_VIOLATION]       = GO(KILLING, KILL),
        [LIFECYCLE_EVENT_LOST]            = STAY(STOPPING),
        [LIFECYCLE_EVENT_TERMINATED]       = GO(KILLING, TERMINATE),
        [LIFECYCLE_EVENT_STOP]            = STAY(STOPPING),
        [LIFECYCLE_EVENT_STOP_TIMEOUT]    = GO(KILLING, TERMINATE),
        [LIFECYCLE_EVENT_EXITED]          = GO(STOPPED, REAP | DOWN),
        [LIFECYCLE_EVENT_RESTART_OVER]    = STAY(STOPPING),
        [LIFECYCLE_EVENT_LIMIT_HIT]       = STAY(STOPPING),
        [LIFECYCLE_EVENT_NOT_WANTED]      = STAY(STOPPING),
        [LIFECYCLE_EVENT_RESET]           = GO(STOPPING, RESET),
    },
    [LIFECYCLE_KILLING] = {
        /* Why it is killed does not matter here: a slot that nobody wants any more answers ACTION_SCHEDULE
         * with NOT_WANTED, and so ends in stopped. */
        [LIFECYCLE_EVENT_START]           = STAY(KILLING),
        [LIFECYCLE_EVENT_SPAWN_FAILED]    = GO(BACKOFF, SCHEDULE),
        [LIFECYCLE_EVENT_READY]           = STAY(KILLING),
        [LIFECYCLE_EVENT_START_TIMEOUT]   = STAY(KILLING),
        [LIFECYCLE_EVENT_JOB_ASSIGNED]    = STAY(KILLING),
        [LIFECYCLE_EVENT_JOB_ENDED]       = STAY(KILLING),
        [LIFECYCLE_EVENT_JOB_TIMEOUT]     = STAY(KILLING),
        [LIFECYCLE_EVENT_WATCHDOG]        = STAY(KILLING),
        [LIFECYCLE_EVENT_VIOLATION]       = GO(KILLING, KILL),
        [LIFECYCLE_EVENT_LOST]            = STAY(KILLING),
        [LIFECYCLE_EVENT_TERMINATED]       = STAY(KILLING),
        [LIFECYCLE_EVENT_STOP]            = STAY(KILLING),
        [LIFECYCLE_EVENT_STOP_TIMEOUT]    = GO(KILLING, KILL),
        [LIFECYCLE_EVENT_EXITED]          = GO(BACKOFF, REAP | SCHEDULE),
        [LIFECYCLE_EVENT_RESTART_OVER]    = STAY(KILLING),
        [LIFECYCLE_EVENT_LIMIT_HIT]       = STAY(KILLING),
        [LIFECYCLE_EVENT_NOT_WANTED]      = STAY(KILLING),
        [LIFECYCLE_EVENT_RESET]           = GO(KILLING, RESET),
    },
    [LIFECYCLE_BACKOFF] = {
        [LIFECYCLE_EVENT_START]           = STAY(BACKOFF),
        [LIFECYCLE_EVENT_SPAWN_FAILED]    = STAY(BACKOFF),
        [LIFECYCLE_EVENT_READY]           = STAY(BACKOFF),
        [LIFECYCLE_EVENT_START_TIMEOUT]   = STAY(BACKOFF),
        [LIFECYCLE_EVENT_JOB_ASSIGNED]    = STAY(BACKOFF),
        [LIFECYCLE_EVENT_JOB_ENDED]       = STAY(BACKOFF),
        [LIFECYCLE_EVENT_JOB_TIMEOUT]     = STAY(BACKOFF),
        [LIFECYCLE_EVENT_WATCHDOG]        = STAY(BACKOFF),
        [LIFECYCLE_EVENT_VIOLATION]       = STAY(BACKOFF),
        [LIFECYCLE_EVENT_LOST]            = STAY(BACKOFF),
        [LIFECYCLE_EVENT_TERMINATED]       = STAY(BACKOFF),
        [LIFECYCLE_EVENT_STOP]            = GO(STOPPED, CANCEL_RESTART | DOWN),
        [LIFECYCLE_EVENT_STOP_TIMEOUT]    = STAY(BACKOFF),
        [LIFECYCLE_EVENT_EXITED]          = STAY(BACKOFF),
        [LIFECYCLE_EVENT_RESTART_OVER]    = GO(STARTING, SPAWN),
        [LIFECYCLE_EVENT_LIMIT_HIT]       = GO(FAILED, NOTHING),
        [LIFECYCLE_EVENT_NOT_WANTED]      = GO(STOPPED, DOWN),
        [LIFECYCLE_EVENT_RESET]           = GO(STARTING, RESET | CANCEL_RESTART | SPAWN),
    },
    [LIFECYCLE_FAILED] = {
        [LIFECYCLE_EVENT_START]           = GO(STARTING, RESET | SPAWN),
        [LIFECYCLE_EVENT_SPAWN_FAILED]    = STAY(FAILED),
        [LIFECYCLE_EVENT_READY]           = STAY(FAILED),
        [LIFECYCLE_EVENT_START_TIMEOUT]   = STAY(FAILED),
        [LIFECYCLE_EVENT_JOB_ASSIGNED]    = STAY(FAILED),
        [LIFECYCLE_EVENT_JOB_ENDED]       = STAY(FAILED),
        [LIFECYCLE_EVENT_JOB_TIMEOUT]     = STAY(FAILED),
        [LIFECYCLE_EVENT_WATCHDOG]        = STAY(FAILED),
        [LIFECYCLE_EVENT_VIOLATION]       = STAY(FAILED),
        [LIFECYCLE_EVENT_LOST]            = STAY(FAILED),
        [LIFECYCLE_EVENT_TERMINATED]       = STAY(FAILED),
        [LIFECYCLE_EVENT_STOP]            = GO(STOPPED, DOWN),
        [LIFECYCLE_EVENT_STOP_TIMEOUT]    = STAY(FAILED),
        [LIFECYCLE_EVENT_EXITED]          = STAY(FAILED),
        [LIFECYCLE_EVENT_RESTART_OVER]    = STAY(FAILED),
        [LIFECYCLE_EVENT_LIMIT_HIT]       = STAY(FAILED),
        [LIFECYCLE_EVENT_NOT_WANTED]      = STAY(FAILED),
        [LIFECYCLE_EVENT_RESET]           = GO(STARTING, RESET | SPAWN),
    },
};
/* clang-format on */

_Static_assert(_LIFECYCLE_N_STATES == 8, "a new state needs a row and a name");
_Static_assert(_LIFECYCLE_N_EVENTS == 18, "a new event needs an entry in every row and a name");

struct lifecycle_transition lifecycle_next(enum lifecycle_state state, enum lifecycle_event event)
{
    return table[state][event];
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

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The life of a slot's worker as one table: (state, event) -> (state, actions). Pure; the slot
 * carries the actions out in the order of their bits. An event that makes no sense in a state
 * leaves it as it is and answers LIFECYCLE_IGNORED, which the slot logs at debug level.
 */

#include <stdint.h>

enum lifecycle_state {
    LIFECYCLE_STOPPED,
    LIFECYCLE_STARTING,
    LIFECYCLE_IDLE,
    LIFECYCLE_BUSY,
    LIFECYCLE_STOPPING, /* asked to stop: finishes the job in hand first */
    LIFECYCLE_KILLING,  /* signalled; only its exit is awaited */
    LIFECYCLE_BACKOFF,  /* dead, a restart is scheduled */
    LIFECYCLE_FAILED,   /* dead too often; waits for a reset */
    _LIFECYCLE_N_STATES,
};

enum lifecycle_event {
    LIFECYCLE_EVENT_START,        /* somebody wants it to run */
    LIFECYCLE_EVENT_SPAWN_FAILED, /* no process came of it: a retry, not a death */
    LIFECYCLE_EVENT_READY,
    LIFECYCLE_EVENT_START_TIMEOUT,
    LIFECYCLE_EVENT_JOB_ASSIGNED,
    LIFECYCLE_EVENT_JOB_ENDED,   /* and none other is in hand */
    LIFECYCLE_EVENT_JOB_TIMEOUT, /* also: a cancelled job that did not end in time */
    LIFECYCLE_EVENT_WATCHDOG,
    LIFECYCLE_EVENT_VIOLATION,    /* it broke the protocol */
    LIFECYCLE_EVENT_LOST,         /* it is said to be dying; that is no proof */
    LIFECYCLE_EVENT_TERMINATED,   /* its process is to end now, whatever it has in hand */
    LIFECYCLE_EVENT_STOP,         /* nobody wants it to run any more */
    LIFECYCLE_EVENT_STOP_TIMEOUT, /* a rung of the stop ladder is over */
    LIFECYCLE_EVENT_EXITED,       /* the process is provably dead */
    LIFECYCLE_EVENT_RESTART_OVER, /* the back-off is over */
    LIFECYCLE_EVENT_LIMIT_HIT,    /* too many deaths: answered to ACTION_SCHEDULE */
    LIFECYCLE_EVENT_NOT_WANTED,   /* the policy says no restart: answered to ACTION_SCHEDULE */
    LIFECYCLE_EVENT_RESET,
    _LIFECYCLE_N_EVENTS,
};

enum lifecycle_action {
    LIFECYCLE_ACTION_RESET = 1u << 0, /* forget the tally of deaths */
    LIFECYCLE_ACTION_CANCEL_RESTART = 1u << 1,
    LIFECYCLE_ACTION_SPAWN = 1u << 2,
    LIFECYCLE_ACTION_ANNOUNCE = 1u << 3, /* available: the cell may hand it a job */
    LIFECYCLE_ACTION_WITHDRAW = 1u << 4, /* no longer available */
    LIFECYCLE_ACTION_SEND_STOP =
        1u << 5, /* first rung: stop message (actor) or KillSignal (service) */
    LIFECYCLE_ACTION_TERMINATE = 1u << 6, /* KillSignal, next rung armed */
    LIFECYCLE_ACTION_ABORT = 1u << 7,     /* SIGABRT, next rung armed */
    LIFECYCLE_ACTION_KILL = 1u << 8,      /* SIGKILL to all of it */
    LIFECYCLE_ACTION_REAP = 1u << 9,      /* death report, release process, lose its jobs */
    LIFECYCLE_ACTION_SCHEDULE = 1u << 10, /* ask the restart policy */
    LIFECYCLE_ACTION_DOWN = 1u << 11,     /* reached stopped: tell whoever waits for it */
};

#define LIFECYCLE_IGNORED UINT16_MAX

struct lifecycle_transition {
    enum lifecycle_state state;
    uint16_t actions; /* bits of enum lifecycle_action, or LIFECYCLE_IGNORED */
};

struct lifecycle_transition lifecycle_next(enum lifecycle_state state, enum lifecycle_event event);

/* "stopped" … "failed"; "start" … for logs and status. Static. */
const char *lifecycle_state_to_string(enum lifecycle_state state);
const char *lifecycle_event_to_string(enum lifecycle_event event);

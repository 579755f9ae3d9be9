/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The life of a slot's worker as a table: (state, event) -> (state, actions). Pure: the slot
 * carries out the actions, in the order of their bits.
 */

#include <stdint.h>

enum lifecycle_state {
    LIFECYCLE_STOPPED,
    LIFECYCLE_STARTING,
    LIFECYCLE_IDLE,
    LIFECYCLE_BUSY,
    LIFECYCLE_STOPPING, /* finishes the job in hand first */
    LIFECYCLE_KILLING,  /* signalled */
    LIFECYCLE_BACKOFF,  /* dead; a restart is scheduled */
    LIFECYCLE_FAILED,   /* dead too often; until a reset */
    _LIFECYCLE_N_STATES,
};

enum lifecycle_event {
    LIFECYCLE_EVENT_START,
    LIFECYCLE_EVENT_ADOPTED,      /* the last supervisor's process continues */
    LIFECYCLE_EVENT_SPAWN_FAILED, /* the process could not be started */
    LIFECYCLE_EVENT_READY,
    LIFECYCLE_EVENT_START_TIMEOUT,
    LIFECYCLE_EVENT_JOB_ASSIGNED, /* the first one in hand */
    LIFECYCLE_EVENT_JOB_ENDED,    /* the last one in hand */
    LIFECYCLE_EVENT_JOB_TIMEOUT,  /* also of a cancelled job that did not end in time */
    LIFECYCLE_EVENT_WATCHDOG,
    LIFECYCLE_EVENT_VIOLATION,    /* of the protocol */
    LIFECYCLE_EVENT_LOST,         /* a hint that the worker is dying */
    LIFECYCLE_EVENT_TERMINATED,   /* the worker is to end, whatever it has in hand */
    LIFECYCLE_EVENT_STOP,         /* no worker is wanted any more */
    LIFECYCLE_EVENT_STOP_TIMEOUT, /* a step of the stop did not help in time */
    LIFECYCLE_EVENT_EXITED,       /* the process has ended */
    LIFECYCLE_EVENT_RESTART_OVER, /* the backoff is over */
    LIFECYCLE_EVENT_LIMIT_HIT,    /* too many deaths: answers ACTION_SCHEDULE */
    LIFECYCLE_EVENT_NOT_WANTED,   /* no restart is wanted: answers ACTION_SCHEDULE */
    LIFECYCLE_EVENT_RESET,
    _LIFECYCLE_N_EVENTS,
};

enum lifecycle_action {
    LIFECYCLE_ACTION_RESET = 1u << 0, /* forget earlier deaths */
    LIFECYCLE_ACTION_CANCEL_RESTART = 1u << 1,
    LIFECYCLE_ACTION_SPAWN = 1u << 2,
    LIFECYCLE_ACTION_ANNOUNCE = 1u << 3, /* the slot can take a job */
    LIFECYCLE_ACTION_WITHDRAW = 1u << 4,
    LIFECYCLE_ACTION_SEND_STOP = 1u << 5, /* stop message, or KillSignal= for a service */
    LIFECYCLE_ACTION_TERMINATE = 1u << 6, /* KillSignal= */
    LIFECYCLE_ACTION_ABORT = 1u << 7,     /* SIGABRT */
    LIFECYCLE_ACTION_KILL = 1u << 8,      /* SIGKILL, to all of its processes */
    LIFECYCLE_ACTION_REAP = 1u << 9,      /* report the death, release the process, lose its jobs */
    LIFECYCLE_ACTION_SCHEDULE = 1u << 10, /* ask the restart policy */
    LIFECYCLE_ACTION_DOWN = 1u << 11,     /* the slot has reached LIFECYCLE_STOPPED */
};

#define LIFECYCLE_IGNORED UINT16_MAX /* the event means nothing in this state */

struct lifecycle_transition {
    enum lifecycle_state state;
    uint16_t actions; /* bits of enum lifecycle_action, or LIFECYCLE_IGNORED */
};

struct lifecycle_transition lifecycle_next(enum lifecycle_state state, enum lifecycle_event event);

/* For logs and status; static. */
const char *lifecycle_state_to_string(enum lifecycle_state state);
const char *lifecycle_event_to_string(enum lifecycle_event event);

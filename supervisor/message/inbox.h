/* SPDX-License-Identifier: MIT */
#pragma once

/* The inbox of the worker or client behind an actor, and the known facts about its contents. It
 * goes with the worker when two workers swap places. */

#include <stdbool.h>
#include <stdint.h>

struct endpoint;

struct inbox {
    struct endpoint *endpoint; /* NULL = there is no worker */
    uint32_t control;          /* enum memory_control, as in the ring's header */
    uint32_t n_messages;       /* not known to be consumed */
    uint32_t n_pooled;         /* of these, for the pool */
    uint32_t settled;          /* cursor behind the last message that was reported on */
    uint32_t n_cancelled;      /* timers, by the request that is being handled */
    bool adopted;              /* the worker is the last supervisor's */
    bool full;                 /* delivery_on_space() will be called */
    bool held_up; /* the outbox is read again once the actor is fed and answers have room */
    bool owed;    /* an answer waits for room; messages must not take it */
};

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Timers that send a message to an actor: once, after a time or at a date, or periodically. The
 * supervisor keeps them, so they outlive the worker that set them; they end with their recipient.
 * A periodic timer keeps its id and does not catch up on missed beats. It skips nearly all beats
 * while its recipient is stopped. Ids are counted and can be guessed, so an actor may only cancel
 * timers that it set or that are for itself.
 */

#include "shared/base/clock.h"
#include "shared/base/handle-table.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/base/share.h"
#include "shared/protocol/topic.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/message/envelope.h"
#include "supervisor/message/remains.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct message_context;
struct payload;

/* Bounds of all timers: their number, their messages by envelope_bytes(), and how often those that
 * are periodic fire in a second. */
#define SCHEDULES_MAX        1000000u
#define SCHEDULES_MEMORY_MAX (UINT64_C(512) << 20)
#define SCHEDULES_BEATS_MAX  50000u
/* Bounds of one setter. Timers whose setter is gone count for its group only. A group, and all
 * setters from outside together, have no more than remains free for all others. */
#define SCHEDULES_PER_ACTOR_MAX        100000u
#define SCHEDULES_PER_ACTOR_MEMORY_MAX (UINT64_C(64) << 20)
#define SCHEDULES_PER_ACTOR_BEATS_MAX  10000u
/* An actor with at most so many beats is not refused because of those of others. */
#define SCHEDULES_PER_ACTOR_BEATS_FREE 1000u
#define SCHEDULE_PERIOD_MIN            USEC_PER_MSEC

#define SCHEDULE_BEATS_SPAN (1000 * USEC_PER_SEC)

/* The kinds of shares of groups. */
enum {
    SCHEDULE_SHARE_N,
    SCHEDULE_SHARE_BYTES,
    SCHEDULE_SHARE_BEATS, /* in SCHEDULE_BEATS_SPAN */
};

/* The armed timers of one setter. */
struct schedule_share {
    uint32_t n;
    uint64_t bytes;
    uint64_t beats; /* in SCHEDULE_BEATS_SPAN */
};

/* The timers for an actor. They may outlive it by some turns, in which they are freed. */
struct schedule_recipient {
    struct actor *actor; /* NULL = it has ended */
    struct list schedules;
    struct index by_type, by_setter;
    struct remains remains; /* once its actor has ended */
};

struct schedule {
    struct list link;                      /* in the recipient's list */
    struct index_entry by_type, by_setter; /* in the recipient's indices */
    struct index_entry by_id;              /* in the table's */
    uint64_t id;                           /* counts from 1 */
    uint64_t handle;                       /* in the table, for lists */
    struct message_context *context;
    struct schedule_recipient *recipient;
    uint64_t setter;     /* reference; 0 = outside */
    struct share *share; /* of its group */
    struct alarm alarm;  /* its date: when it fires next, realtime */
    usec_t due;          /* a date with `realtime`, else monotonic */
    usec_t period;       /* 0 = once */
    bool realtime;
    struct envelope *envelope; /* the message to send; owned */
    uint64_t bytes;            /* of envelope_bytes() */
};

struct schedule_table {
    struct handle_table handles;
    struct index by_id;
    uint64_t last_id;
    struct shares shares; /* of groups, by SCHEDULE_SHARE_* */
};

void schedule_table_init(struct schedule_table *table);
void schedule_table_deinit(struct schedule_table *table); /* there is no timer */

/* Returns the number of timers for an actor. */
size_t schedule_count_for(const struct actor *to);

struct schedule_options {
    struct actor *to;
    uint64_t sender; /* the setter; 0 = outside */
    usec_t at;       /* delay, or with `realtime` a date */
    usec_t period;   /* 0 = once */
    bool realtime;
    const struct topic *topic; /* valid; copied */
    struct payload *payload;   /* moved from, whatever the result; NULL = none */
};

enum {
    _SCHEDULE_E_SUCCESS,
    SCHEDULE_E_TOO_MANY, /* a bound of all timers, or of the setter's group, is reached */
    SCHEDULE_E_SHARE,    /* a bound of the setter is reached */
};

/* Returns 0 with an id, SCHEDULE_E_*, or -ENOMEM. */
int schedule_add(struct message_context *context, const struct schedule_options *options,
                 uint64_t *ret);

/* Cancels a timer if the actor `by` may; NULL = any timer may be cancelled. Returns the number of
 * cancelled timers: 0 or 1. */
unsigned schedule_cancel(struct message_context *context, uint64_t id, const struct actor *by);
/* Cancels at most `max` timers of exactly this type for one recipient. Returns their number. */
unsigned schedule_cancel_type(struct actor *to, const char *type, uint32_t type_size,
                              const struct actor *by, unsigned max);

/* Ends all timers for an actor, which is about to end. Those that it has set for others continue.
 */
void schedule_forget(struct actor *to);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Timers that tell an actor something: once after a time or at a date, or again and again. The
 * supervisor keeps them, so they outlive the worker that set them; they end with their recipient.
 * A periodic one keeps its id and its beat, and does not catch up on what it missed. Ids are
 * counted, so anybody can guess one: an actor may cancel what it has set and what is for itself.
 * Beats are left out when the timers of one owner go off too often (beats.h), and nearly all of
 * them while the recipient is stopped.
 */

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/protocol/topic.h"
#include "supervisor/loop/alarm.h"
#include "supervisor/message/envelope.h"
#include "supervisor/message/schedule/beats.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct actor;
struct message_context;
struct payload;

/* All together, at most. */
#define SCHEDULES_MAX 1000000u
/* What they are to tell, all together, by envelope_bytes(). */
#define SCHEDULES_MEMORY_MAX (UINT64_C(512) << 20)
/* Of these, who sets them may have so many, an actor by itself; those from outside (who may do
 * anything) half of all, together. What was set by one who is gone for good counts for nobody. */
#define SCHEDULES_PER_ACTOR_MAX        100000u
#define SCHEDULES_PER_ACTOR_MEMORY_MAX (UINT64_C(64) << 20)
/* The shortest period: nobody is to be kept busy by beats alone. */
#define SCHEDULE_PERIOD_MIN USEC_PER_MSEC

/* What one has set and is still to come. */
struct schedule_share {
    uint32_t n;
    uint64_t bytes;
    struct beats beats;
};

struct schedule {
    struct list link;                      /* in the recipient's list, or the free list */
    struct index_entry by_type, by_setter; /* in the recipient's indices */
    struct index_entry by_id;              /* in the table's */
    uint64_t id;                           /* counts from 1; 0 = free */
    struct message_context *context;
    struct actor *to;
    uint64_t setter; /* reference; 0 = outside */
    struct alarm alarm;
    usec_t due;    /* as `realtime` says: a date, or monotonic */
    usec_t period; /* 0 = once */
    bool realtime;
    bool orphan;               /* a periodic one whose setter is gone, and known to be */
    struct envelope *envelope; /* what it tells; owned */
    uint64_t bytes;            /* what that counts */
};

struct schedule_table {
    struct schedule **entries;
    uint32_t n_entries, n_allocated;
    struct list free;
    struct index by_id;
    uint64_t last_id;
    uint64_t n_armed;
    uint64_t bytes; /* of all their messages */
    struct schedule_share outside;
    struct beats_total beats;
    struct beats orphans; /* the beats of those whose setters are gone */
};

void schedule_table_init(struct schedule_table *table);
void schedule_table_deinit(struct schedule_table *table);

struct schedule_options {
    struct actor *to;
    uint64_t sender; /* who sets it; 0 = somebody outside */
    usec_t at;       /* delay, or with `realtime` a date */
    usec_t period;   /* 0 = once */
    bool realtime;
    const struct topic *topic; /* valid; copied */
    struct payload *payload;   /* moved from, whatever the result; NULL = none */
};

enum {
    _SCHEDULE_E_SUCCESS,
    SCHEDULE_E_TOO_MANY, /* SCHEDULES_MAX, SCHEDULES_MEMORY_MAX */
    SCHEDULE_E_SHARE,    /* who sets it has SCHEDULES_PER_ACTOR_MAX, or as much to tell */
};

/* 0 with its id, SCHEDULE_E_*, or -ENOMEM. */
int schedule_add(struct message_context *context, const struct schedule_options *options,
                 uint64_t *ret);

/*
 * How many were cancelled: 0 or 1; and all of exactly this type for one recipient. `by` = on behalf
 * of this actor, which may cancel its own and those for itself; NULL = of somebody who may cancel
 * all.
 */
unsigned schedule_cancel(struct message_context *context, uint64_t id, const struct actor *by);
unsigned schedule_cancel_type(struct actor *to, const char *type, uint32_t type_size,
                              const struct actor *by);
/* At most `max` of exactly this type, whoever set them. Their number. */
unsigned schedule_cancel_some(struct actor *to, const char *type, uint32_t type_size, unsigned max);

/* The actor is gone: all timers for it end. Those that it has set for others go on. */
void schedule_forget(struct actor *to);

/* When it goes off next, realtime. */
usec_t schedule_due(const struct schedule *schedule);

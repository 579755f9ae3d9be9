/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Events: what happened, for people (log), for watchers (Varlink), and for those inside who wait
 * for a state. Emitting one logs it, keeps it in a bounded ring and tells every subscriber, in this
 * order.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "shared/base/log.h"
#include "supervisor/event/death.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENTS_KEPT 1000

/* The strings are borrowed by event_emit() and copied. */
struct event {
    uint64_t id; /* counts from 1; filled in */
    usec_t at;   /* realtime; filled in when 0 */
    enum log_level level;
    const char *type;  /* "worker.started", "worker.ready", "worker.died", "worker.failed",
                          "worker.stopped", "worker.spare-used", "cell.created", "cell.retired",
                          "group.paused", "group.resized", "job.dead", "job.cancelled",
                          "supervisor.ready" … ; static */
    const char *group; /* NULL = none, likewise below */
    const char *cell;  /* "group/key" */
    const char *worker;
    uint64_t generation; /* of the worker; 0 = none */
    const char *job;
    const char *job_state;  /* of that job, in its own events; static */
    uint32_t attempt;       /* the same; 0 = none yet */
    const char *message_id; /* of the journal catalog; static */
    const char *message;
    bool quotes;         /* the message quotes a worker: not for everyone */
    struct death *death; /* a reference is taken */
};

struct limited_log;

struct event_subscriber {
    struct list link;
    void (*fn)(struct event_subscriber *subscriber, const struct event *event);
};

struct event_bus {
    struct event *kept; /* ring of EVENTS_KEPT */
    size_t n_kept, next;
    uint64_t last_id;
    struct list subscribers;
    struct list line_subscribers;
    struct list job_watchers; /* who wants events of single jobs as well */
    struct limited_log *log;  /* NULL = lines are not limited; subscribers get all */
};

/* 0 or -ENOMEM. */
int event_bus_init(struct event_bus *bus);
void event_bus_deinit(struct event_bus *bus);

void event_emit(struct event_bus *bus, struct event event);

/* Tells those who watch single jobs; neither logs nor keeps it. */
void event_emit_job(struct event_bus *bus, const struct event *event);

/* Whether anybody does: else there is no need to make such an event. */
static inline bool event_jobs_watched(const struct event_bus *bus)
{
    return !list_empty(&bus->job_watchers);
}

/* For events of single jobs alone; event_unsubscribe() ends it. */
void event_watch_jobs(struct event_bus *bus, struct event_subscriber *watcher);

/* The callback may unsubscribe itself. */
void event_subscribe(struct event_bus *bus, struct event_subscriber *subscriber);
void event_unsubscribe(struct event_subscriber *subscriber);

/* Kept event number i, 0 = oldest; NULL beyond. */
const struct event *event_kept(const struct event_bus *bus, size_t i);
/* The oldest kept event with a higher id than this; NULL = none. */
const struct event *event_after(const struct event_bus *bus, uint64_t id);

/* ---- lines that workers write, for who follows them; they are not kept ---- */

struct event_line_subscriber {
    struct list link;
    void (*fn)(struct event_line_subscriber *subscriber, const char *worker, const char *line);
};

void event_emit_line(struct event_bus *bus, const char *worker, const char *line);
void event_subscribe_lines(struct event_bus *bus, struct event_line_subscriber *subscriber);
void event_unsubscribe_lines(struct event_line_subscriber *subscriber); /* idempotent */

/* SPDX-License-Identifier: MIT */
#pragma once

/* Events for the log, for Varlink clients and for subscribers inside the supervisor. Emitting
 * one logs it, keeps it in a bounded ring and calls every subscriber, in this order. */

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "shared/base/log.h"
#include "supervisor/event/death.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENTS_KEPT 1000

/* Strings are borrowed; event_emit() copies those that it keeps. */
struct event {
    uint64_t id; /* counts from 1; filled in */
    usec_t at;   /* realtime; filled in when 0 */
    enum log_level level;
    const char *type;  /* see Event in io.troupe.Supervisor.varlink; static */
    const char *group; /* NULL = none, likewise below */
    const char *cell;  /* "group/key" */
    const char *worker;
    uint64_t generation; /* of the worker; 0 = none */
    const char *job;
    const char *job_state; /* in events of single jobs; static */
    uint32_t attempt;      /* likewise; 0 = none yet */
    /* Likewise: why the attempt has failed, or why the job was cancelled. Kept events have static
     * texts. */
    const char *cause;
    const char *traceparent, *span; /* likewise: the submitter's, and that of the attempt */
    const char *message_id;         /* in the journal's catalog; static */
    const char *message;
    bool quotes;         /* the message quotes a worker, so not everyone may read it */
    struct death *death; /* a reference is taken */
};

struct limited_log;

struct event_subscriber {
    struct list link;
    void (*fn)(struct event_subscriber *subscriber, const struct event *event);
};

/* To events of single jobs, of which there may be hundreds of thousands per second: each reaches
 * only the subscribers to all groups and those to its own. */
struct job_subscriber {
    struct index_entry by_group; /* a hash of its name; 0 = all groups */
    bool linked;
    bool untraced; /* not only to events of jobs with a traceparent */
    void (*fn)(struct job_subscriber *subscriber, const struct event *event);
};

struct event_bus {
    struct event *kept; /* ring of EVENTS_KEPT */
    size_t n_kept, next;
    uint64_t last_id;
    struct list subscribers;
    struct index job_subscribers; /* struct job_subscriber */
    unsigned n_untraced;          /* of those */
    struct list line_subscribers; /* to output lines of workers: `worker` and `message` */
    struct limited_log *log;      /* limits lines; NULL = no limit. Subscribers get all lines */
};

/* Returns 0 or -ENOMEM. */
int event_bus_init(struct event_bus *bus);
void event_bus_deinit(struct event_bus *bus);

void event_emit(struct event_bus *bus, struct event event);
/* Like event_emit(); the message is `subject`, a name, followed by the formatted text. */
void event_tell(struct event_bus *bus, struct event event, const char *subject, const char *format,
                va_list arguments) __attribute__((format(printf, 4, 0)));

/* Emits where the worker of this report, which has its stacks, crashed or hung; nothing if that is
 * not known. */
void event_locate(struct event_bus *bus, struct death *death);

/* Calls the subscribers of one list; neither logs nor keeps the event. */
void event_publish(struct list *subscribers, const struct event *event);

/* Subscribes to a list of the bus. The callback may unsubscribe itself. */
static inline void event_subscribe(struct list *subscribers, struct event_subscriber *subscriber)
{
    list_push_back(subscribers, &subscriber->link);
}

/* Idempotent. */
static inline void event_unsubscribe(struct event_subscriber *subscriber)
{
    list_unlink(&subscriber->link);
}

/* Subscribes to events of single jobs of a group, or of the group of a cell or worker; NULL = of
 * all. A hash stands for the name, so those of another group may come. */
void event_subscribe_jobs(struct event_bus *bus, struct job_subscriber *subscriber,
                          const char *target);
/* Idempotent. */
void event_unsubscribe_jobs(struct event_bus *bus, struct job_subscriber *subscriber);
/* Whether an event of a single job of the group has a subscriber. */
bool event_job_wanted(const struct event_bus *bus, const char *group, bool traced);
/* Calls its subscribers. */
void event_publish_job(struct event_bus *bus, const struct event *event);

/* Returns kept event number `i`, 0 = oldest; NULL beyond. */
const struct event *event_kept(const struct event_bus *bus, size_t i);
/* Returns the oldest kept event with a higher id; NULL = none. */
const struct event *event_after(const struct event_bus *bus, uint64_t id);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between supervisor.c (life, signals, stop), supervisor-start.c (opens the
 * parts), supervisor-reload.c (reads the configuration) and supervisor-review.c (readiness and
 * status). */

#include "supervisor/config/names/lookup.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/notify.h"
#include "supervisor/loop/signals.h"
#include "supervisor/parts.h"
#include "supervisor/process/cgroup.h"
#include "supervisor/process/journal.h"
#include "supervisor/reload.h"
#include "supervisor/supervisor.h"

#define supervisor_of(pointer, member) list_entry(pointer, struct supervisor, member)

struct supervisor {
    struct parts parts;
    const struct supervisor_options *options;
    struct config *config;
    struct cgroup_tree cgroups;
    struct journal journal;
    struct notify notify;
    struct signals signals;
    struct control *control;
    char *runtime_directory;
    bool ready;
    struct event_subscriber on_event;
    struct loop_deferred review; /* once a turn after something happened */
    struct timer status_timer;   /* one line for many events */
    struct timer stop_timer;
    struct list reloads;         /* struct reload_call.link; the first one is under way */
    struct loop_deferred reload; /* begins the first one */
    struct config *loaded;       /* by the one under way, which waits for `lookup` */
    struct lookup lookup;
    struct reload_call hangup; /* SIGHUP's */
    bool hangup_again;         /* another SIGHUP came meanwhile */
};

static inline struct loop *loop_of(const struct supervisor *supervisor)
{
    return supervisor->parts.loop;
}

/* SIGTERM and SIGINT stop, a second one kills; SIGHUP reloads. */
void supervisor_on_signal(void *userdata, int signo, pid_t sender);

/* ---- supervisor-reload.c ---- */

/* Reads it for the first time. Returns 0 or -errno, logged. */
int supervisor_load_config(struct supervisor *supervisor);

void supervisor_init_reload(struct supervisor *supervisor);
/* Begins a waiting reload: the supervisor is ready. */
void supervisor_resume_reload(struct supervisor *supervisor);
/* SIGHUP. */
void supervisor_hang_up(struct supervisor *supervisor);
/* Ends all reloads with -ESHUTDOWN: the supervisor stops. */
void supervisor_end_reload(struct supervisor *supervisor);

/* ---- supervisor-start.c ---- */

/* Opens everything but groups and cgroups. Returns 0 or -errno, logged; supervisor_free() closes
 * what is open. */
int supervisor_open(struct supervisor *supervisor);
/* Workers also run without cgroups; the log says what is missing. */
void supervisor_open_cgroups(struct supervisor *supervisor);
/* 0 or -errno. */
int supervisor_start_groups(struct supervisor *supervisor);

/* ---- supervisor-review.c ---- */

void supervisor_review(struct loop_deferred *deferred);
void supervisor_on_status_due(struct timer *timer, usec_t now);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between supervisor.c (life, signals, stop), supervisor-start.c (opens the
 * parts), supervisor-socket.c (the control socket), supervisor-store.c (durable jobs),
 * supervisor-history.c (ended jobs), supervisor-reload.c (reads the configuration),
 * supervisor-unconfigured.c (waits for one without problems), supervisor-review.c (readiness,
 * status, safe mode), supervisor-losses.c (what a stop loses), and supervisor-upgrade.c. */

#include "supervisor/config/names/lookup.h"
#include "supervisor/group/restore.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/notify.h"
#include "supervisor/loop/signals.h"
#include "supervisor/parts.h"
#include "supervisor/process/cgroup.h"
#include "supervisor/process/journal.h"
#include "supervisor/reload.h"
#include "supervisor/supervisor.h"
#include "supervisor/upgrade/kinds.h"

#define supervisor_of(pointer, member) list_entry(pointer, struct supervisor, member)

struct saved_file;

/* Checks the new program, and makes way for it. */
struct upgrade {
    struct list calls;            /* struct upgrade_call.link: one upgrade for all */
    struct loop_deferred begin;   /* begins it, once the supervisor runs */
    bool checking;                /* the new program is being checked */
    struct spawner_client client; /* of the check */
    bool late;                    /* its callers know that it has failed */
    pid_t pid;                    /* 0 = the keeper has not answered yet */
    int output_fd, report_fd;     /* of the check */
    struct timer timeout;
    bool approved;             /* the loop ends, and the new program takes over */
    struct loop_deferred stop; /* ends it */
    usec_t stop_by;
    struct saved_file *saved; /* by the last supervisor; NULL = it is not open */
};

struct supervisor {
    struct parts parts;
    const struct supervisor_options *options;
    struct config *config;
    struct cgroup_tree cgroups;
    struct journal journal;
    struct notify notify;
    struct signals signals;
    struct control *control;
    struct spawner_client socket_client; /* for `socket` */
    struct holding socket;               /* the control socket */
    int socket_lock;                     /* control_lock() of its path; -1 = none */
    int socket_inotify;             /* tells when the socket or its lock is removed; -1 = none */
    struct loop_watch socket_watch; /* of socket_inotify */
    bool has_foreign_socket;        /* the service manager's, at another path than --socket */
    char *runtime_directory;
    char *socket_variable;
    bool ready;
    bool reported; /* the keeper knows that this supervisor serves */
    struct upgrade upgrade;
    struct event_subscriber on_event;
    struct loop_deferred review; /* once a turn after something happened */
    struct timer status_timer;   /* one line for many events */
    struct timer stop_timer;     /* until workers are killed, then until `end_by` */
    usec_t end_by;               /* how long a stop waits for the stores; 0 = workers still run */
    struct restore restore;
    struct timer opening_timer;  /* how long readiness waits for the store */
    struct list reloads;         /* struct reload_call.link; the first one runs */
    struct loop_deferred reload; /* begins the first one */
    struct config *loaded;       /* by the reload that runs, which waits for `lookup` … */
    bool awaits_closed;          /* … or until the jobs of groups have been ended */
    struct lookup lookup;
    struct reload_call hangup;       /* SIGHUP's */
    bool hangup_again;               /* another SIGHUP came during a reload */
    struct config_problems problems; /* at the start, until supervisor_settle_config() */
    int config_error;                /* -errno: the configuration was unreadable at the start */
    char config_problem[CONFIG_PROBLEM_MAX];
    struct timer config_timer; /* reads the configuration again while it has a problem */
    usec_t config_delay;
};

static inline struct loop *loop_of(const struct supervisor *supervisor)
{
    return supervisor->parts.loop;
}

/* SIGTERM and SIGINT stop, a second one kills; SIGHUP reloads. */
void supervisor_on_signal(void *userdata, int signo, pid_t sender);

/* ---- supervisor-reload.c ---- */

/* Reads the configuration for the first time, and logs its problems. Returns 0, also with problems,
 * or -ENOMEM. */
int supervisor_load_config(struct supervisor *supervisor);
/* Decides which groups can start, once the holdings of the last supervisor are known. Returns 0 or
 * -ENOMEM. Also returns 0 if no group can start: then `config_problem` says why, and the defaults
 * apply. */
int supervisor_settle_config(struct supervisor *supervisor);
/* Checks whether groups can start with a configuration that has these problems. A group with a
 * mistake in its own files is kept back, or continues with its previous configuration. Returns 0,
 * CONFIG_E_INVALID (`config_problem` and `problems` say why), or -ENOMEM. */
int supervisor_admit_config(struct supervisor *supervisor, struct config *config,
                            struct config_problems *problems, bool allow_empty);

/* Has the settings of troupe.conf take effect. */
void supervisor_apply_daemon(struct supervisor *supervisor);

void supervisor_init_reload(struct supervisor *supervisor);
/* Begins a waiting reload: the supervisor is ready. */
void supervisor_resume_reload(struct supervisor *supervisor);
/* SIGHUP. */
void supervisor_hang_up(struct supervisor *supervisor);
/* Ends all reloads with -ESHUTDOWN: the supervisor stops. */
void supervisor_end_reload(struct supervisor *supervisor);

/* ---- supervisor-losses.c ---- */

/* Logs what a stop that begins loses, a line for each group that loses anything. */
void supervisor_log_losses(const struct supervisor *supervisor);

/* ---- supervisor-unconfigured.c ---- */

/* Sets `config_problem`: the configuration cannot be read, `r` is -errno. */
void supervisor_note_error(struct supervisor *supervisor, int r);
/* Serves the control socket, and leaves running processes alone, until the configuration is valid.
 */
void supervisor_await_config(struct supervisor *supervisor);
/* Starts the groups: the configuration is valid. `call` lists them. Takes over `config`. If not all
 * can be made, ends the process as a start that has failed. */
void supervisor_start_late(struct supervisor *supervisor, struct config *config,
                           struct reload_call *call);

/* ---- supervisor-start.c ---- */

/* Opens everything but groups. Returns 0 or -errno, logged; supervisor_free() closes what is open.
 */
int supervisor_open(struct supervisor *supervisor);
/* Workers also run without cgroups; the log says what is missing. */
void supervisor_use_cgroups(struct supervisor *supervisor);
/* Makes the groups of the configuration. 0 or -errno: then some may be missing. */
int supervisor_make_groups(struct supervisor *supervisor);
/* Starts the groups that were made: they take over what the last supervisor had of them. What no
 * group takes over ends. */
void supervisor_start_groups(struct supervisor *supervisor);

/* ---- supervisor-socket.c ---- */

/* Opens and serves the control socket. Returns 0 or, after a log line, -errno. */
int supervisor_open_socket(struct supervisor *supervisor);
/* Makes the socket again if it was removed from the file system. */
void supervisor_review_socket(struct supervisor *supervisor);
/* Closes the socket and its lock, and removes both files unless they are another supervisor's. */
void supervisor_close_socket(struct supervisor *supervisor);

/* ---- supervisor-store.c ---- */

/* Return where a file of the state directory, and the database, is; the caller frees it. NULL when
 * out of memory. */
char *supervisor_state_file(const struct config_daemon *config, const char *name);
char *supervisor_store_path(const struct config_daemon *config);
/* Whether the state directory is configured. Otherwise it is the default one, which may be that of
 * another supervisor. */
bool supervisor_has_state_directory(const struct config_daemon *config);
/* If limits may have been set in earlier runs, groups that are made from now on hold back their
 * jobs until these limits are read, or turn out to be unreadable. */
void supervisor_await_limits(struct supervisor *supervisor);
/* Opens the store if a group or a schedule needs it and it is not open. The log says why that
 * fails. */
void supervisor_open_store(struct supervisor *supervisor);
/* Called after the removal of a group that may have left jobs on disk: they get a group that no
 * file describes. */
void supervisor_scan_store(struct supervisor *supervisor);
/* Whether jobs are being read. Until then, the ends of those that a worker had in hand cannot be
 * written. */
bool supervisor_store_is_restoring(const struct supervisor *supervisor);
bool supervisor_store_is_opening(const struct supervisor *supervisor);
/* Whether readiness waits until the store is open. */
bool supervisor_store_is_awaited(const struct supervisor *supervisor);
void supervisor_on_opening_timeout(struct timer *timer, usec_t now);
/* Has the threads of the store and of the history rest (store.h), or work again. Returns whether
 * both rest; otherwise supervisor_on_settled() follows. */
bool supervisor_rest_stores(struct supervisor *supervisor);
/* Returns the problem of the one that cannot rest (store_is_stuck()); NULL = both can. */
const char *supervisor_stuck_store(const struct supervisor *supervisor);
void supervisor_resume_stores(struct supervisor *supervisor);
void supervisor_on_settled(void *userdata);
/* Without the loop: waits a while until all ends of jobs are written. Returns whether they are. */
bool supervisor_settle_store(struct supervisor *supervisor);
/* A step of the stop, once all workers have stopped: writes what waits, and closes the databases.
 * Returns whether that has ended, or takes too long; otherwise supervisor_on_settled() follows. */
bool supervisor_end_stores(struct supervisor *supervisor);
/* Closes the store and the history, after the loop has ended. A thread that hangs stays, with its
 * store: the process is about to end. */
void supervisor_close_stores(struct supervisor *supervisor);

/* ---- supervisor-history.c ---- */

/* Opens the history if it is needed, and sets the groups' bounds in it. The log says why that
 * fails. */
void supervisor_open_history(struct supervisor *supervisor);
void supervisor_close_history(struct supervisor *supervisor);

/* ---- supervisor-upgrade.c ---- */

void supervisor_init_upgrade(struct supervisor *supervisor);
/* Begins an upgrade that waits, if the supervisor is ready for it. */
void supervisor_resume_upgrade(struct supervisor *supervisor);
/* The supervisor stops: gives up the upgrade that runs, and those that wait. */
void supervisor_end_upgrade(struct supervisor *supervisor);
/* Saves what only this process knows, while the loop stands still. Returns false if the upgrade has
 * failed, and nothing has changed. */
bool supervisor_save(struct supervisor *supervisor);
/* Brings back a part of what the last supervisor has saved. If the file cannot be used in an
 * upgrade, ends the process, so that the keeper starts the old program. */
void supervisor_restore_saved(struct supervisor *supervisor, enum upgrade_stage stage);
/* Removes the file, once this supervisor serves: until then the old program may need it. */
void supervisor_forget_saved(struct supervisor *supervisor);
/* Hands everything over to the new program, after the loop has ended. */
void supervisor_hand_over(struct supervisor *supervisor);

/* ---- supervisor-review.c ---- */

/* Tells the keeper, once, that this supervisor serves. At a first start, that is when all is ready.
 */
void supervisor_report_ready(struct supervisor *supervisor);
void supervisor_review(struct loop_deferred *deferred);
void supervisor_on_status_due(struct timer *timer, usec_t now);

/* Pauses all groups if the keeper asks for safe mode. Call it before any job is handed out. */
void supervisor_enter_safe_mode(struct supervisor *supervisor);
/* Has the keeper forget earlier crashes. Resumes the groups that safe mode has paused. Returns
 * whether there was safe mode. */
bool supervisor_leave_safe_mode(struct supervisor *supervisor);

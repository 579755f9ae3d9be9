/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Death reports: what is known about a worker's end, and the bounded log of the last ones.
 */

#include "shared/base/clock.h"
#include "shared/base/list-cursor.h"
#include "shared/base/list.h"
#include "shared/base/share.h"
#include "shared/protocol/protocol.h"
#include "shared/protocol/topic.h"
#include "shared/ring/memory.h"
#include "supervisor/keeper/spawn.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum death_cause {
    DEATH_EXIT,   /* it left by itself */
    DEATH_SIGNAL, /* a signal that the supervisor did not send */
    DEATH_OOM,
    DEATH_JOB_TIMEOUT,
    DEATH_WATCHDOG,
    DEATH_START_TIMEOUT,
    DEATH_VIOLATION,   /* it broke the protocol and was killed */
    DEATH_NO_PROGRESS, /* its cell was stuck, and it had a job in hand */
    DEATH_STOP,        /* it was asked to stop: not a failure */
    _DEATH_N_CAUSES,
};

/* A group's name, a key, the number of a slot. */
#define DEATH_WORKER_MAX 144
#define DEATH_DETAIL_MAX 160

/* A message that the worker took before it died. */
#define DEATH_MESSAGES_MAX 16

struct death_message {
    uint64_t id;
    usec_t sent_at; /* realtime */
    bool in_hand;   /* it had not finished with it */
    char sender[DEATH_WORKER_MAX];
    char type[TOPIC_TYPE_MAX + 1];
};

struct death {
    struct list link;       /* in the log, like the next three */
    struct list share_link; /* in its group's share */
    struct share *share;
    uint64_t serial; /* counts up; set by death_log_add() */
    unsigned references;
    char worker[DEATH_WORKER_MAX]; /* "group/slot", "group/key/slot" */
    uint64_t generation;
    pid_t pid;
    usec_t at; /* realtime */
    enum death_cause cause;
    char detail[DEATH_DETAIL_MAX]; /* "killed by SIGSEGV (core dumped)", "exited with status 3" … */
    struct spawn_exit exit;
    usec_t uptime;
    uint64_t jobs_done;
    char command[PROTOCOL_COMMAND_MAX + 1]; /* not the worker died but what it ran for its job */
    char job[PROTOCOL_ID_TEXT];             /* in hand; empty if none */
    uid_t owner_uid, submitter_uid; /* of its group's User=, of that job; 0 = root, or nobody */
    uint32_t attempt;
    size_t n_messages; /* the flight recorder, newest first */
    struct death_message *messages;
    size_t state_size; /* last state page; 0 = none was published */
    uint8_t *state;
    bool state_of_job;  /* published since the job in hand was started */
    size_t stderr_size; /* last lines since the job in hand, or the worker, began */
    char *stderr_text;  /* that many bytes, NULs among them; NULL = none, or no memory for them */
};

/*
 * Each report belongs to its worker's group. When the log is full, the oldest report of a group
 * that has at least an equal share of it goes.
 */
struct death_log {
    struct list deaths;  /* newest first */
    struct list cursors; /* struct list_cursor.link, in these */
    struct shares shares;
    size_t n_deaths, max;
    uint64_t n_total;
};

void death_log_init(struct death_log *log, size_t max);
/* Another maximum: the oldest beyond it go. */
void death_log_resize(struct death_log *log, size_t max);
void death_log_deinit(struct death_log *log);

/* A zeroed report with one reference, the caller's. NULL when out of memory. */
struct death *death_new(void);
struct death *death_ref(struct death *death);
struct death *death_unref(struct death *death); /* NULL allowed; returns NULL */

/* Keeps a reference (not when out of memory); drops reports beyond the maximum. */
void death_log_add(struct death_log *log, struct death *death);

/*
 * The last reports of workers that had this message in hand, oldest first: at most `max`, their
 * number is returned. Borrowed. Looks at the newest DEATHS_SEARCHED reports only.
 */
#define DEATHS_SEARCHED 4096
size_t death_log_find_message(const struct death_log *log, uint64_t message, struct death **ret,
                              size_t max);

/* "exit" … "stop", as in the Varlink interface. Static. */
const char *death_cause_to_string(enum death_cause cause);

/* Fills `detail` from cause and exit: the one sentence a paged engineer reads. */
void death_describe(struct death *death);

/* "SIGSEGV"; "signal 77" for one without a name goes to `buffer` of 16 bytes. */
const char *death_signal_name(int signal, char *buffer);

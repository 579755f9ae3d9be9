/* SPDX-License-Identifier: MIT */
#pragma once

/* Death reports: why and how a worker ended, and a bounded log of the last ones. */

#include "shared/base/clock.h"
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

struct record;
struct saved_reader;
struct saved_writer;
struct saver;

enum death_cause {
    DEATH_EXIT,   /* it exited */
    DEATH_SIGNAL, /* a signal that the supervisor did not send */
    DEATH_OOM,
    DEATH_JOB_TIMEOUT,
    DEATH_WATCHDOG,
    DEATH_START_TIMEOUT,
    DEATH_VIOLATION,   /* broke the protocol and was killed */
    DEATH_NO_PROGRESS, /* had a job in a cell that made no progress */
    DEATH_STOP,        /* on request: not a failure */
    DEATH_SYSTEM_CALL, /* made a system call that its filters forbid */
    _DEATH_N_CAUSES,
};

/* Why an attempt failed: the values of "cause" of the type Attempt in io.troupe.Jobs, in their
 * order. Rows of durable jobs and of dead letters have the numbers: new ones come last. */

enum attempt_cause {
    ATTEMPT_CAUSE_NONE, /* no attempt has failed, or it is not known why */
    ATTEMPT_CAUSE_RETRY,
    ATTEMPT_CAUSE_EXIT,
    ATTEMPT_CAUSE_SIGNAL,
    ATTEMPT_CAUSE_OOM,
    ATTEMPT_CAUSE_JOB_TIMEOUT,
    ATTEMPT_CAUSE_WATCHDOG,
    ATTEMPT_CAUSE_START_TIMEOUT,
    ATTEMPT_CAUSE_VIOLATION,
    ATTEMPT_CAUSE_NO_PROGRESS,
    ATTEMPT_CAUSE_STOP,
    ATTEMPT_CAUSE_SUPERVISOR,
    ATTEMPT_CAUSE_SYSTEM_CALL,
    ATTEMPT_CAUSE_RESULT_TOO_LARGE, /* ResultMax= */
    _ATTEMPT_N_CAUSES,
};

/* Returns ATTEMPT_CAUSE_NONE for any other word. */
enum attempt_cause attempt_cause_from_string(const char *word);
/* Returns "" for ATTEMPT_CAUSE_NONE; static. */
const char *attempt_cause_to_string(enum attempt_cause cause);

/* "group/key/number" at most. */
#define DEATH_WORKER_MAX 144
#define DEATH_DETAIL_MAX 240

/* Bounds the messages listed in a report. */
#define DEATH_MESSAGES_MAX 16

struct death_message {
    uint64_t id;
    usec_t sent_at; /* realtime */
    char sender[DEATH_WORKER_MAX];
    char type[TOPIC_TYPE_MAX + 1];
};

struct death {
    struct list link;       /* in death_log.deaths; the next three also belong to the log */
    struct list share_link; /* in its group's share */
    struct share *share;
    uint64_t serial; /* counts up; set by death_log_add() */
    unsigned references;
    char worker[DEATH_WORKER_MAX]; /* "group/slot", "group/key/slot" */
    uint64_t generation;
    pid_t pid;
    usec_t at; /* realtime */
    enum death_cause cause;
    /* In the supervisor's words: "killed by SIGSEGV (core dumped)", "exited with status 3" … */
    char detail[DEATH_DETAIL_MAX];
    /* In the worker's words, so restricted: the reason with which it ended itself; else empty. */
    char reason[DEATH_DETAIL_MAX];
    struct spawn_exit exit;
    usec_t uptime;
    uint64_t jobs_done;
    /* The command of troupe-exec that died; empty = the worker itself died. */
    char command[PROTOCOL_COMMAND_MAX + 1];
    char job[PROTOCOL_ID_TEXT];     /* in hand; empty if none */
    uid_t owner_uid, submitter_uid; /* of the group's User=, of the job; 0 = root or none */
    uint32_t attempt;
    size_t n_messages; /* that it was handling */
    struct death_message *messages;
    size_t state_size; /* of the last published state; 0 = none */
    uint8_t *state;
    bool state_of_job;  /* published for the job in hand */
    size_t stderr_size; /* output since the job in hand, or the worker, started */
    char *stderr_text;  /* may contain NULs; NULL = none, or out of memory */
    size_t stack_size;
    char *stack; /* where its threads were (stack.h); may come after the report; NULL = none */
    char *top;   /* the result of stack_top(); NULL = not known */
    char stack_missing[DEATH_DETAIL_MAX]; /* why there is no stack; "" = it comes, or is not wanted
                                           */
    struct death_log *log;
    struct list stack_link;    /* in `stack_share` */
    struct share *stack_share; /* its group's share of the stacks; NULL = no stack */
};

/* How many bytes of stacks all reports have together, whoever refers to them. Beyond that, the
 * oldest stack of a group that has at least an equal share is dropped. */
#define DEATH_STACKS_MAX (UINT64_C(16) << 20)

/* The log shares its room among the groups: when it is full, it drops the oldest report of a
 * group that has at least an equal share. */
struct death_log {
    struct list deaths;  /* struct death.link */
    struct list cursors; /* struct list_cursor.link: positions in `deaths` */
    struct shares shares;
    size_t n_deaths, max;
    uint64_t n_total;
};

void death_log_init(struct death_log *log, size_t max);
/* Changes the maximum, and drops the oldest reports beyond it. */
void death_log_resize(struct death_log *log, size_t max);
void death_log_deinit(struct death_log *log);

/* Returns a zeroed report with one reference, the caller's; NULL when out of memory. It is not in
 * the log yet, which bounds its stack. */
struct death *death_new(struct death_log *log);
struct death *death_ref(struct death *death);
struct death *death_unref(struct death *death); /* NULL allowed; returns NULL */

/* Adds the report, with a reference of its own, and drops reports beyond the maximum. Without
 * memory it is not added. */
void death_log_add(struct death_log *log, struct death *death);

/* Whether the report lists the message as one that the worker was handling. */
bool death_had_in_hand(const struct death *death, uint64_t message);

/* How many of the newest reports a search looks at. */
#define DEATHS_SEARCHED 4096

/* Finds the last reports that `wanted` selects, oldest first, among the newest DEATHS_SEARCHED.
 * Returns their number, at most `max`; the reports are borrowed. */
size_t death_log_find(const struct death_log *log,
                      bool (*wanted)(const struct death *death, const void *userdata),
                      const void *userdata, struct death **ret, size_t max);

/* Returns "exit" … "stop", as in the Varlink interface. Static. */
const char *death_cause_to_string(enum death_cause cause);
/* Why a worker with this cause ends or has ended, in words; NULL if its end explains it. Static. */
const char *death_cause_text(enum death_cause cause);

/* Fills `detail` from cause and exit; `why` (NULL = none) explains the cause. */
void death_describe(struct death *death, const char *why);

/* The most that one call counts. */
#define DEATH_PLACES_MAX 64
#define DEATHS_COUNTED   1000

/* Deaths of a group that ended in the same way at the same place. */
struct death_place {
    uint64_t hash;
    const struct death *last; /* borrowed */
    usec_t first_at;          /* realtime */
    uint64_t n;
    bool open; /* the client may know the place */
};

/* Groups the newest DEATHS_COUNTED deaths that `wanted` selects by their places, and fills in
 * `ret`, the place of the last death first. Looks at the newest DEATHS_SEARCHED, and skips stops.
 * `open` says whether the client may know a place. Returns the number of places. */
size_t death_count(const struct death_log *log,
                   bool (*wanted)(const struct death *death, const void *userdata),
                   bool (*open)(const struct death *death, const void *userdata),
                   const void *userdata, struct death_place ret[DEATH_PLACES_MAX]);

/* Takes over the text of the stack; NULL = there is none, because of `missing`. `worker` is set. */
void death_set_stack(struct death *death, char *text, size_t size, const char *missing);

/* Returns "SIGSEGV", or for a signal without a name "signal 77", in `buffer` of 16 bytes. */
const char *death_signal_name(int signal, char *buffer);

/* ---- across an upgrade ---- */

#define DEATH_ROW "death"
extern const struct record DEATH_RECORD; /* without the members that have no fixed size */

/* Saves the log, a row of that kind for each report. */
void death_log_save(const struct death_log *log, struct saver *saver);
/* Adds the report of a row to the log, under its serial. Returns 0, -EBADMSG or -ENOMEM. */
int death_log_restore(struct death_log *log, struct saved_reader *row);

/* Write and read a reference to a report: its serial, or the report itself if it is not in the log
 * any more. `death` NULL = none. death_get() returns a reference of the caller's; NULL = none,
 * damaged, or out of memory. */
void death_put(struct saved_writer *row, const struct death *death);
struct death *death_get(struct saved_reader *row, struct death_log *log);

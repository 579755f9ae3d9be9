/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The store: writes durable jobs to disk in a thread of its own, so that the loop never waits for
 * it. The thread takes all tasks that wait, applies them in one transaction, and hands them back
 * after the commit: what arrives during a commit is the next transaction.
 *
 * The queue to the thread has no bound of its own, and adding to it never fails: an end must not be
 * refused. A task is embedded in what it concerns. A job has one task, into which all of its
 * changes are merged, and at most another one for the removal of its result or dead letter. So
 * QueueMax=, ResultsMax= and the like also bound the queue. A query is cancelled with its client.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include "supervisor/event/latency.h"
#include "supervisor/loop/loop.h"
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct database;
struct database_format;
struct record;
struct saved_reader;
struct saver;
struct store;

/* The size of a file that keeps disk space free. It is removed when the disk is full: half of the
 * space is for the ends of jobs, half for copying the log into the database. */
#define RESERVE_SIZE (16 << 20)

enum store_urgency {
    STORE_AT_ONCE,
    STORE_HELD, /* after STORE_HOLD, whatever else is written: it is likely to be taken back */
    STORE_LAZY, /* when something else is written, or after STORE_LAZY_MAX */
};
#define STORE_HOLD     200 /* microseconds: about one sync of a fast disk */
#define STORE_LAZY_MAX (20 * USEC_PER_MSEC)

/*
 * A change or a read, embedded in what it concerns. From store_add() until done(), or until
 * store_cancel() returns true, it belongs to the store, and what apply() uses must not change.
 * Tasks are applied in the order in which they were added; later ones overtake those that are held
 * or take several transactions, and changes overtake queries.
 */
struct store_task {
    struct list link;
    uint64_t batch; /* private to the store, as are `error` and `taken` */
    int error;
    bool taken; /* a query that the thread has, or has finished */
    /* Refused while the store is not open: -ENOSPC, -EIO. Other tasks wait until it is open again:
     * they must not get lost. */
    bool addition;
    /* A task that only reads, for a client that may leave before its turn. Queries have their own
     * queue: the thread answers one between two transactions, of each user in turn. So a query sees
     * committed data, and never delays a change by more than one apply(), which should take about
     * as long as a sync. One that takes long returns STORE_E_MORE from apply(). store_free() ends
     * it with -ECANCELED.
     */
    bool query;
    bool is_first; /* private to query-queue.c, as is `others` */
    struct list others;
    uid_t asker;    /* of a query: each user's are answered in turn */
    bool impatient; /* a task that changes nothing: ends with -EIO when the store has failed,
                       instead of waiting */
    /* When it is handed to the thread. */
    enum store_urgency urgency;
    usec_t held_until; /* private to the store */
    /* Runs in the thread, within a transaction unless it is a query; touches only the task and what
     * belongs to it. May run more than once until it is committed. Returns the result for done():
     * 0, a positive result, or an unchanged error of the database. STORE_E_MORE: it has written or
     * read a part, and runs again later; others overtake it until it is done. */
    int (*apply)(struct store_task *task, struct database *database);
    /* Runs in the loop after the commit, or after a refusal. `result` is what apply() returned, or:
     *   -ENOSPC, -EIO  (additions) refused, or in a transaction that failed. After -EIO the row may
     *                  be on disk; the caller removes it with a task that is no addition.
     *   -EUCLEAN       the store is unusable
     *   -ECANCELED     store_free(): it could not be written */
    void (*done)(struct store_task *task, int result);
};

#define STORE_E_MORE INT_MAX

enum store_state {
    STORE_OPENING, /* tasks wait */
    STORE_OPEN,
    STORE_FULL,     /* no space: additions are refused, the rest uses the reserve */
    STORE_FAILED,   /* an I/O error: additions are refused, the rest waits until it is open again */
    STORE_UNUSABLE, /* permanently: damaged, or written by a newer trouped. All is refused */
    _STORE_N_STATES,
};

struct store_options {
    const char *path; /* of the database; its directory is made if it is missing. Copied */
    uint8_t *opened;  /* as of struct database; NULL = ends without a stop are not counted */
    /* Of another database than that of durable jobs, for which no disk space is reserved; NULL =
     * that one. */
    const struct database_format *format;
    /* For tests: a VFS of SQLite, the time until a first retry, and the pages in the log that make
     * a checkpoint. NULL, 0 = the usual ones. */
    const char *vfs;
    usec_t retry;
    int log_pages;
    /* Called in the loop after each change of the state. */
    void (*changed)(void *userdata, enum store_state state);
    /* Called in the loop when the thread rests, or cannot, and when it has ended; NULL = not
     * wanted. */
    void (*settled)(void *userdata);
    void *userdata;
};

/* Starts the thread, which opens the database. Returns 0 or -errno. */
int store_new(struct store **ret, struct loop *loop, const struct store_options *options);

/* Waits until all tasks are written, if the store is open, and the thread has ended. Calls done()
 * for all of them. NULL allowed; returns NULL. */
struct store *store_free(struct store *store);

/* Begins the end, while the loop continues: the thread writes all tasks, if the store is open,
 * closes the database and ends. Tasks that are added later end with -ECANCELED in store_free(),
 * which does not wait once store_has_ended(). */
enum store_end {
    STORE_END,
    STORE_END_RUN, /* if all tasks are written, notes that trouped was stopped: no job is in hand */
    STORE_LEAVE,   /* leaves the log as it is, as for a crash: another process is about to open the
                    * database, and the disk that the log would be copied on may hang */
};
void store_end(struct store *store, enum store_end how);
bool store_has_ended(const struct store *store);

/* Has the thread finish what it was handed, and then rest, while the loop continues. Call it before
 * the process ends: a process cannot end while one of its threads waits for the disk. Tasks that
 * are added later, and queries, wait for store_resume(); store_work() and store_end() write tasks,
 * without other work on the database. */
void store_rest(struct store *store);
void store_resume(struct store *store);
bool store_rests(const struct store *store);
/* It cannot rest: the disk is full, and changes wait for space. */
bool store_is_stuck(const struct store *store);

/* The thread hangs, and the process is about to end: the loop forgets the store. The thread and its
 * memory stay. */
void store_abandon(struct store *store);

/* Without the loop: hands all tasks to the thread, waits for at most `timeout` until it has
 * finished some, and calls done() for those. */
void store_work(struct store *store, usec_t timeout);

/* Adds a task that is not in the store. done() is never called from within. */
void store_add(struct store *store, struct store_task *task);

/* Takes a task back. Returns false if the thread has taken it already: then done() follows. */
bool store_cancel(struct store *store, struct store_task *task);

/* Counts since the store was opened, also by earlier supervisors whose upgrade led to this one. */
struct store_stats {
    uint64_t n_commits;
    uint64_t n_waiting;    /* tasks that are added, and not done */
    struct histogram sync; /* time of a commit, which a sync ends */
    uint64_t bytes;        /* of the database and its log, as of the last commit */
    uint64_t free_bytes;   /* of their file system, likewise */
};
struct store_stats store_stats(struct store *store);

/* The kind of the row with which an upgrade hands over these counts. */
#define STORE_TALLY_ROW "store-tally"
extern const struct record STORE_STATS_RECORD;
/* Save and restore that row; `store` NULL = do nothing. Return 0, or -EBADMSG: the row is damaged.
 */
void store_tally_save(struct store *store, struct saver *saver);
int store_tally_restore_row(struct store *store, struct saved_reader *row);

enum store_state store_state(const struct store *store);
/* "opening", "open", "full", "failed", "unusable"; static. */
const char *store_state_to_string(enum store_state state);
/* Why the store is not open, with the file and what to do; "" if it is. Valid until the loop's next
 * turn. */
const char *store_problem(const struct store *store);

/* Whether the thread opens the database or writes to it now. */
bool store_is_writing(const struct store *store);
/* Whether it has done so for seconds: the disk hangs, or another program locks the database. */
bool store_is_slow(const struct store *store);
/* The texts for a slow store, and for one in the state STORE_OPENING. */
#define STORE_SLOW_TEXT    "the disk does not answer, or another program locks the database"
#define STORE_OPENING_TEXT "the store of durable jobs is being opened: try again"

/* A number for a new job (job-number.h), and the key that makes its id. Valid once the store has
 * been open. */
int64_t store_next_number(struct store *store);
uint64_t store_id_key(const struct store *store);

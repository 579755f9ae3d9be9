/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between store*.c. */

#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/store/database.h"
#include "supervisor/store/query-queue.h"
#include "supervisor/store/store.h"
#include <pthread.h>

#define task_of(node) list_entry(node, struct store_task, link)

/* The thread's reports about the database. */
struct store_report {
    unsigned serial; /* of the change */
    enum store_state state;
    int64_t first_number; /* 0 = not known yet */
    uint64_t id_key;
    char problem[DATABASE_PROBLEM_MAX];
};

/* The thread's own. */
struct store_worker {
    struct database database;
    struct list tasks;   /* taken, and not finished */
    struct list begun;   /* likewise, after STORE_E_MORE */
    unsigned n_left;     /* how many tasks this transaction still takes */
    bool sweeps;         /* there may be pieces to remove */
    int pages_copied;    /* in the log, at the last checkpoint */
    usec_t retry_at;     /* monotonic: when to open it, or to make the reserve, again */
    usec_t locked_since; /* monotonic: another program holds the lock for writing; 0 = no */
    char reserve[PATH_MAX + 16];
    bool reserved;      /* the reserve is there */
    bool rests;         /* does nothing but write changes, as of the last take() */
    usec_t measured_at; /* monotonic: when the sizes in the statistics were read */
};

struct store {
    /* The loop's own. */
    struct loop *loop;
    char path[PATH_MAX];
    const char *vfs;
    const struct database_format *format;
    usec_t retry;
    int log_pages;
    void (*changed)(void *userdata, enum store_state state);
    void (*settled)(void *userdata);
    void *userdata;
    bool at_rest, is_stuck, has_ended; /* `rests`, `stuck` and `ended`, as of the last event */
    struct list pending;               /* added, and not handed to the thread */
    uint64_t batch;                    /* that `pending` will be */
    struct loop_deferred handover;     /* at the end of the turn */
    struct list done;                  /* taken from `finished`; their done() is due */
    struct loop_deferred turn;         /* for these */
    usec_t done_at;                    /* loop_now() of the last one that had some */
    struct timer lazy;
    struct list held;  /* tasks that wait for their time, oldest first */
    struct timer hold; /* until the first of them is pending */
    struct store_report seen;
    int64_t next_number; /* 0 = not known yet */
    uint64_t n_waiting;  /* tasks between store_add() and done() */
    struct loop_watch watch;
    int event_fd; /* the thread has something for the loop */
    pthread_t thread;

    /* Both sides', under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t wake;        /* of the thread */
    struct list queue;          /* for the thread */
    struct query_queue queries; /* for the thread; it unlinks a query when it takes it */
    uint64_t handed;            /* the last batch in or through the queue */
    uint64_t taken;             /* the last batch that the thread has taken */
    struct list finished;
    struct store_report report;
    struct store_stats stats; /* without `n_waiting` */
    bool resting, stopping;   /* the loop wants the thread to rest, or to end */
    enum store_end end;       /* set before `stopping` */
    bool rests, ended;        /* the thread rests, or has ended */
    bool stuck;               /* it cannot rest: changes wait for space on disk */

    /* Since when the thread opens the database, writes a transaction, or copies the log; 0 = it
     * does not. note_writing() of the thread stores, writing_since() of the loop loads. */
    _Atomic usec_t writing_since;

    struct store_worker worker;
};

/* ---- store-stats.c ---- */

/* Both are called by the thread. store_note_commit() counts a commit, and how long it took.
 * store_measure() reads the sizes of the files, if that was long ago, or if `now`. */
void store_note_commit(struct store *store, usec_t took);
void store_measure(struct store *store, bool now);

/* ---- store-thread.c ---- */

void store_worker_init(struct store *store);
/* The thread. */
void *store_run(void *store);

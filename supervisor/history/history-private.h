/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between history*.c. */

#include "supervisor/history/history-rows.h"
#include "supervisor/history/history.h"
#include "supervisor/loop/loop.h"
#include <limits.h>
#include <pthread.h>

/* The queue may take this much memory. */
#define QUEUE_BYTES ((uint64_t)16 << 20)
/* Rows that are written without waiting for more, and at most in one transaction. */
#define BATCH_MIN 1000u
#define BATCH_MAX 8192u

struct history {
    /* The loop's own. */
    struct loop *loop;
    void (*changed)(void *userdata);
    void *userdata;
    struct list pending; /* rows of this turn */
    size_t n_pending;
    struct loop_deferred handover; /* at its end */
    struct list active;            /* struct history_call.active */
    struct list known;             /* struct history_group.known */
    uint64_t n_dropped;            /* rows for which there was no room */
    char seen[HISTORY_PROBLEM_MAX];
    struct loop_watch watch;
    int event_fd; /* the thread has something for the loop */
    pthread_t thread;

    /* Bytes of the rows in the queue: the loop adds, the thread subtracts. */
    _Atomic uint64_t queued;

    /* Both sides', under the mutex. */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct list rows; /* for the thread */
    size_t n_rows;
    usec_t since;      /* monotonic: when the first of them came */
    struct list calls; /* for the thread */
    struct list finished;
    struct list asked; /* struct history_group.link: new to the thread */
    bool groups_changed;
    char problem[HISTORY_PROBLEM_MAX];
    struct history_stats stats; /* `n_dropped`: rows that could not be written */
    bool stopping;

    /* The thread's own. */
    struct list groups;  /* struct history_group.link */
    struct list retired; /* those that were read from the file, and replaced: hits may name them */
    struct history_database database;
    char path[PATH_MAX];
    usec_t retry;
    uint64_t free_min;
    usec_t retry_at; /* monotonic: when to open it again; 0 = it is open */
    usec_t prune_at; /* monotonic: when to look for old rows */
    bool for_good;   /* it is damaged, or a newer trouped wrote it */
};

/* ---- history-thread.c ---- */

/* The thread. */
void *history_run(void *history);

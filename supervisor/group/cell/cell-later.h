/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The durable jobs of a cell that begin much later wait on disk only: memory has their numbers and
 * times. Shortly before its time, a job's number goes to the backlog, which reads it. Such a job
 * counts as delayed, and as on disk. Jobs with a unique key, or that wait for others, stay in
 * memory.
 */

#include "shared/base/heap.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/loop/alarm.h"
#include <stdbool.h>
#include <stdint.h>

struct cell;
struct job;
struct job_row;

/* Jobs by their time: a date, or by clock_steady(). */
struct later_jobs {
    struct index by_number;
    struct heap dates, delays;
};

struct cell_later {
    struct later_jobs jobs;
    struct alarm date, delay; /* shortly before the first of each kind */
    struct list in_review;    /* struct job.link: jobs that may be dropped from memory */
};

void cell_later_init(struct cell *cell);

/* A job of which something was written may be dropped from memory, unless it begins soon. */
void cell_later_review(struct job *job);
/* Called at the end of a turn: drops jobs in review from memory. */
void cell_later_turn(struct cell *cell);

/* Takes a job that is not in memory, of a group that is being restored. Returns false if it begins
 * soon or memory is short: its row is to be read. */
bool cell_later_add_row(struct cell *cell, const struct job_row *row);

bool cell_later_has(const struct cell *cell, int64_t number);
/* The job of the row is in memory again: it waits for its time there, if that has not come.
 * Returns false if it has come. */
bool cell_later_resume(struct cell *cell, struct job *job, const struct job_row *row);

/* Drops it all from memory, in the next turns: the jobs stay on disk. The cell may be freed before.
 */
void cell_later_leave(struct cell *cell);

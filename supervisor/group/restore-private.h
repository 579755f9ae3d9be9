/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between restore.c (the sequence, live jobs) and restore-ended.c (dead letters
 * and kept results). */

#include "supervisor/config/config.h"
#include "supervisor/group/restore.h"
#include "supervisor/store/database.h"
#include "supervisor/store/job-load.h"

struct saved_job;

/* Rows that are read at a time. Each chunk waits for the commit of concurrent writes, so a
 * million jobs need large chunks; results are read with their payloads. */
#define RESTORE_JOBS_MAX    8192
#define RESTORE_RESULTS_MAX 256

enum restore_stage {
    RESTORE_LETTERS,
    RESTORE_RESULTS,
    RESTORE_LIVE,
    RESTORE_DONE,
};

/* A live job's row. */
struct restore_row {
    int64_t number;
    uid_t uid; /* of its submitter */
    uint64_t payload_size;
    bool waits;        /* for a worker */
    bool has_deadline; /* it is in memory until then */
    uint8_t priority;
    uint32_t key_size;
    char group[CONFIG_GROUP_NAME_MAX + 1];
    char key[PROTOCOL_NAME_MAX + 1];
    char name[PROTOCOL_NAME_MAX + 1]; /* chosen id */
};

/* The thread fills in rows and copies while the task is in the store; the loop takes them
 * afterwards, and says what is read next. */
struct restore_chunk {
    enum restore_stage stage;
    int64_t end;        /* numbers from here on belong to jobs of this run */
    int64_t after;      /* the last number that was taken */
    usec_t after_ended; /* the end of that job, for results */
    struct list copies; /* struct loaded_job.link: dead letters or results */
    unsigned n;         /* rows read */
    struct restore_row rows[RESTORE_JOBS_MAX];
};

/* Returns the group of a row, if it is being restored. Makes a group that no file describes, if the
 * row is of no other. */
struct group *restore_group_of_row(const struct restore *restore, const char *name, size_t size,
                                   int64_t number);

/* Whether a row is that of a job of an earlier run. `group`: its group; NULL = it has none. */
bool restore_is_old(const struct restore *restore, const struct group *group, int64_t number);

/* Whether the store is about to refuse the job that has this id, which was chosen. */
bool restore_is_free_soon(const struct restore *restore, const char *name, size_t size);

/* ---- restore-ended.c ---- */

/* Read the next dead letters or results into chunk->copies. Return 0 or -errno. */
int restore_read_letters(struct restore_chunk *chunk, struct database *database);
int restore_read_results(struct restore_chunk *chunk, struct database *database);

/* Take them over, and free the copies. */
void restore_take_letters(struct restore *restore);
/* Returns whether the rest of the chunk is to be read again. */
bool restore_take_results(struct restore *restore);
void restore_free_copies(struct restore_chunk *chunk);

/* Keeps the result of a job that was made for it, and that ends with that. Returns 0 or -ENOMEM. */
int restore_saved_result(struct group *group, struct job *job, const struct saved_job *saved,
                         struct payload *result);

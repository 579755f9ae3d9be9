/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls that change all items that match a filter, over several turns. With "dry_run", they only
 * count the matches. */

#include "shared/base/list.h"
#include "supervisor/varlink/request-parts.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control_context;
struct dead_letter;
struct job;
struct job_waiter;

/* Embedded in the state of the call. */
struct bulk {
    struct request_parts parts; /* the owner sets its functions before request_in_parts() */
    bool dry_run;
    bool cancels;    /* does not count a job that ends in another way before its turn */
    uint64_t n_done; /* with `dry_run`: the matches */
    uint64_t n_failed;
    char problem[256];  /* why the last one failed; empty = none has failed */
    struct list writes; /* struct bulk_write.link: changes that are not on disk yet */
    size_t n_writes;
    struct control_context *context;
};

#define bulk_of(pointer) list_entry(pointer, struct bulk, parts)

/* Prepares the bulk, which belongs to the state of the call. */
void bulk_init(struct bulk *bulk, struct request *request);
/* Changes that are being written continue without the call. */
void bulk_deinit(struct bulk *bulk);

/* Counts an item that could not be changed: CELL_E_* or -errno, or a sentence. */
void bulk_fail(struct bulk *bulk, int error);
void bulk_fail_because(struct bulk *bulk, const char *problem);

/*
 * A change of a durable job that is being written. Set bulk_on_written() as changed() of a waiter
 * on the job, with the write as its owner: that counts the change, resumes the call after the last
 * one, and frees both. `letter` (NULL = none) is replaced by the job: it is freed when the job is
 * on disk, or put back. Returns NULL when out of memory.
 */
struct bulk_write *bulk_write_new(struct bulk *bulk, struct dead_letter *letter);
/* Frees a write that has not begun; NULL allowed. */
void bulk_write_free(struct bulk_write *write);
void bulk_on_written(struct job_waiter *waiter, struct job *job);

/* Writes the fields of the reply: `key`: how many were changed, "failed", "problem". */
void bulk_report(const struct bulk *bulk, struct reply *reply, const char *key);

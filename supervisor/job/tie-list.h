/* SPDX-License-Identifier: MIT */
#pragma once

/* The jobs to which another one is tied, by their ids: as a client names them, and as text that
 * outlives the supervisor. */

#include "shared/protocol/job-id.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job;

#define JOB_PARENTS_MAX 64u

/* For which end of its parent a child waits. The values are part of the protocol. */
enum tie_condition {
    TIE_SUCCESS,
    TIE_FAILURE, /* any end but success */
    TIE_END,
    _TIE_N_CONDITIONS,
};

/* Returns the name that clients see; static. */
const char *tie_condition_to_string(enum tie_condition condition);

/* A key identifies a job across an upgrade. A durable job's key is the number of its row, which
 * also identifies it across runs. 0 = none. */
static inline int64_t tie_key_of_handle(uint64_t handle)
{
    return (int64_t)(handle | UINT64_C(1) << 63);
}
static inline bool tie_key_is_durable(int64_t key)
{
    return key > 0;
}

/* One other job that a job is tied to: a parent, or its batch. */
struct tie {
    char id[PROTOCOL_ID_TEXT]; /* "" = none */
    int64_t key;
    struct job *job;   /* NULL = not known, or not in memory */
    uint8_t condition; /* enum tie_condition */
    uint8_t end;       /* enum job_state; 0 = it is live, as far as is known */
};
struct tie_list {
    struct tie parents[JOB_PARENTS_MAX];
    unsigned n;
    struct tie batch;
};

/* Returns 0, or -EINVAL: no possible id. */
int tie_set_id(struct tie *tie, const char *id, size_t size);
/* Adds parents from ids with commas, each once. Returns 0, or -EINVAL: none or too many, or an
 * impossible id. */
int tie_list_parse(struct tie_list *list, const char *ids, size_t size,
                   enum tie_condition condition);

/* Returns the text, which the caller frees; NULL without memory. */
char *tie_list_write(const struct tie_list *list);
/* Reads such a text. Returns 0 or -EBADMSG. */
int tie_list_read(struct tie_list *ret, const char *text, size_t size);

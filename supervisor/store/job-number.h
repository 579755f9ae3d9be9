/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Numbers of durable jobs. A number is the primary key of the job's row. Numbers count up and are
 * never used again: the upper bits count the starts of trouped.
 *
 * The id of a durable job without a chosen name is made from its number and the database's secret,
 * and the other way round. So finding a job by its id takes no index on disk, where inserting
 * random ids would cost more than all the rest.
 */

#include "shared/base/hash.h"
#include "shared/protocol/job-id.h"
#include <stdint.h>

#define JOB_NUMBER_RUN_SHIFT 44 /* 1.7e13 jobs in a run, 500,000 runs */

/* The first number of a run. */
static inline int64_t job_number_first(uint64_t run)
{
    return (int64_t)(run << JOB_NUMBER_RUN_SHIFT) + 1;
}

/* Returns the id without a name: low is the number, mixed with the key; high proves that the id was
 * made here. */
static inline struct protocol_id job_number_to_id(uint64_t id_key, int64_t number)
{
    struct protocol_id id = {.low = hash_mix((uint64_t)number ^ id_key)};

    id.high = hash_mix(id.low + id_key);
    return id;
}

/* Returns the number, or 0 if the id was not made by job_number_to_id() with this key. */
static inline int64_t job_number_of_id(uint64_t id_key, const struct protocol_id *id)
{
    if (id->name[0] != '\0' || id->high != hash_mix(id->low + id_key))
        return 0;
    return (int64_t)(hash_unmix(id->low) ^ id_key);
}

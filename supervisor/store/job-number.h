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

#include "shared/protocol/job-id.h"
#include <stdint.h>

#define JOB_NUMBER_RUN_SHIFT 44 /* 1.7e13 jobs in a run, 500,000 runs */

/* The first number of a run. */
static inline int64_t job_number_first(uint64_t run)
{
    return (int64_t)(run << JOB_NUMBER_RUN_SHIFT) + 1;
}

/* Returns the id without a name. */
struct protocol_id job_number_to_id(uint64_t id_key, int64_t number);

/* Returns the number, or 0 if the id was not made by job_number_to_id() with this key. */
int64_t job_number_of_id(uint64_t id_key, const struct protocol_id *id);

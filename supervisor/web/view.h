/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Makes replies small enough for a browser that asks every second: thousands of workers become
 * counts, or one page of them.
 */

#include <jansson.h>

/*
 * For GetStatus. Each group and cell gets "workers_total" and "workers_by_state", an object of
 * counts, instead of its workers and those of its cells; each group loses its cells. With "limit"
 * in `local`, the groups keep cells and workers from "offset" on, at most "limit" of each; a group
 * with a single cell in the reply keeps that cell's workers instead. Published states and the last
 * output of dead workers are omitted, unless there is a single worker. "at" of `local` is kept.
 */
json_t *view_status(json_t *reply, const json_t *local);

/* For Watch: omits the output of dead workers, which ListDeaths has. */
json_t *view_events(json_t *reply, const json_t *local);

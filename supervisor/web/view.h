/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Makes replies small enough for a browser that asks every second: thousands of workers become
 * counts, and of those that somebody looks at a page is shown.
 */

#include <jansson.h>

/*
 * Of GetStatus. Each group and cell gets "workers_total" and "workers_by_state", an object of
 * counts, instead of its workers and those of its cells; each group loses its cells. With "limit"
 * in `local`, the groups keep cells and workers from "offset" on, at most "limit" of each; a group
 * of which the reply has one cell alone keeps that cell's workers instead. Published states and
 * what workers wrote before they died are left out of workers, unless there is one alone. "at" of
 * `local` is passed on.
 */
json_t *view_status(json_t *reply, const json_t *local);

/* Of Watch: without what dead workers have written, which ListDeaths tells. */
json_t *view_events(json_t *reply, const json_t *local);

/* A new, lighter copy of one event; NULL when out of memory. */
json_t *view_event(json_t *event);

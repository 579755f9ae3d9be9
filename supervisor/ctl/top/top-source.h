/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What top knows of the supervisor. A refresh is one call of GetMetrics, which also brings the
 * status of what is shown and new deaths. Survives the loss of the connection.
 */

#include "shared/base/clock.h"
#include "supervisor/caller/varlink-client.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct top_source {
    const char *socket; /* borrowed */
    usec_t timeout;     /* of a call */
    struct varlink_client client;
    json_t *metrics;   /* the last reply of GetMetrics; NULL = none so far */
    json_t *before;    /* the one before it, of the same supervisor; NULL = none */
    usec_t at;         /* when the last one came, monotonic */
    usec_t elapsed;    /* between the two; 0 = not known */
    json_t *status;    /* of open groups, by name */
    json_t *rounds;    /* of top-open.c: whose turn it is in each of them */
    json_t *wanted;    /* status for the next refresh: names by group, or null for all of it */
    bool wants_all;    /* each refresh asks for the status of all groups */
    json_t *deaths;    /* the last ones, newest first */
    uint64_t n_deaths; /* deaths_total of the last reply */
    json_t *totals, *totals_before; /* jobs done by group, for rates */
    char problem[256];              /* why the last call failed; "" = it did not */
};

/* Release it with top_source_deinit(). Returns 0 or -ENOMEM. */
int top_source_init(struct top_source *source, const char *socket, usec_t timeout);
void top_source_deinit(struct top_source *source);

/* Asks for metrics, new deaths, and the status that is wanted; connects if necessary. Returns 0, or
 * -errno with `problem`; the data stays as it was then. Each cell, or worker of a group without
 * cells, has the additional member "asked_at", which is `at`, and once it has been asked for twice
 * "rate": the jobs per second that ended between the two. */
int top_source_refresh(struct top_source *source);

/* Asks for all of a group at once. Returns 0 or -errno. */
int top_source_open(struct top_source *source, const char *group);
/* Has the next refresh ask for the open groups in view, an object with the names of their cells or
 * workers in view, which are the keys of an object: for these, and as far as necessary for others,
 * or for all of a group. `others`: also for some of the others in turn. Adds to `in_view`. */
void top_source_want(struct top_source *source, json_t *in_view, bool others);
/* Puts the groups of an answer in the place of what was known of them. Returns 0 or -errno. */
int top_source_take_status(struct top_source *source, const json_t *groups);
/* Forgets the status of groups that are not in the object `open`. */
void top_source_close_others(struct top_source *source, const json_t *open);

/* Makes a call of io.troupe.Supervisor, and joins the replies if there are several. Takes
 * `parameters` over. `*ret` (may be NULL) is owned by the caller. Returns 0, or -errno with
 * `problem`: -EREMOTEIO for an error reply. */
int top_source_call(struct top_source *source, const char *method, json_t *parameters,
                    json_t **ret);

/* Jobs per second of a group whose total is now `total`; negative = not known yet. */
double top_source_rate(struct top_source *source, const char *group, int64_t total);

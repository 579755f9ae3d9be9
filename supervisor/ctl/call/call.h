/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls to the supervisor for the verbs. All functions print errors and return an exit status. */

#include "shared/base/clock.h"
#include "supervisor/ctl/command/invocation.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct varlink_reply;

#define CALL_SUPERVISOR "io.troupe.Supervisor."
#define CALL_JOBS       "io.troupe.Jobs."
#define CALL_ACTORS     "io.troupe.Actors."
#define CALL_SCHEDULES  "io.troupe.Schedules."

/* The default of --timeout. */
#define CALL_TIMEOUT (30 * USEC_PER_SEC)

/* Connects unless that is done. Each call also does this. */
int call_open(struct invocation *invocation);

/*
 * Calls `method`. Takes ownership of `parameters`: an object, or NULL when out of memory. The
 * caller owns `*ret`, the parameters of the reply. With `patient` there is no default time-out.
 */
int call(struct invocation *invocation, const char *method, json_t *parameters, bool patient,
         json_t **ret);

/* Like call(), but also prints the reply with output_reply(). */
int call_print(struct invocation *invocation, const char *method, json_t *parameters, bool patient,
               output_fn show);

/*
 * Like call(), but also returns EXIT_OK with an error reply. Release the reply with
 * varlink_reply_deinit().
 */
int call_any(struct invocation *invocation, const char *method, json_t *parameters, bool patient,
             struct varlink_reply *ret);

/*
 * Like call_any(), but with "more": calls `each` with the borrowed parameters of every reply, until
 * it returns anything but EXIT_OK. Returns EXIT_OK after the last reply. The time-out is for each
 * reply.
 */
typedef int (*call_reply_fn)(struct invocation *invocation, const json_t *parameters, bool last,
                             void *userdata);
int call_more(struct invocation *invocation, const char *method, json_t *parameters, bool patient,
              call_reply_fn each, void *userdata);

/* Prints "out of memory". */
int call_no_memory(void);

/* ---- all pages or parts ---- */

/*
 * Calls `method` with `parameters`, of which it takes ownership, until there is no further page or
 * `limit` items have been read (0 = no limit). The caller owns `*ret`: the last reply, with all
 * items in its member `array`, and with "next" if there may be more. Returns an exit status.
 */
int pages_collect(struct invocation *invocation, const char *method, json_t *parameters,
                  const char *array, int64_t limit, json_t **ret);

/*
 * Adds the groups of one reply of GetStatus to those of earlier replies. A group or cell that
 * continues from the previous reply gets further cells and workers, and its newer numbers. `part`
 * is borrowed. Returns 0 or -ENOMEM.
 */
int parts_add_groups(json_t *groups, const json_t *part);

/*
 * Call GetStatus for `target` (NULL = all; `brief`: without cells and workers), or GetMetrics. The
 * caller owns `*ret`, the whole reply. Return an exit status.
 */
int parts_of_status(struct invocation *invocation, const char *target, bool brief, json_t **ret);
int parts_of_metrics(struct invocation *invocation, json_t **ret);

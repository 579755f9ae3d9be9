/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls to the supervisor for the verbs. All functions print errors and return an exit status. */

#include "shared/base/clock.h"
#include "supervisor/ctl/command/exit-status.h"
#include "supervisor/ctl/command/invocation.h"
#include <jansson.h>
#include <stdbool.h>

struct invocation;
struct varlink_reply;

#define CALL_SUPERVISOR "io.troupe.Supervisor."
#define CALL_JOBS       "io.troupe.Jobs."
#define CALL_ACTORS     "io.troupe.Actors."

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

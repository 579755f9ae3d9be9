/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Calls to the supervisor as the verbs need them: every failure is told to the user here, and what
 * is returned is the exit status that fits it.
 */

#include "shared/base/clock.h"
#include "supervisor/ctl/command/exit-status.h"
#include <jansson.h>
#include <stdbool.h>

struct invocation;
struct varlink_reply;

#define CALL_SUPERVISOR "io.troupe.Supervisor."
#define CALL_JOBS       "io.troupe.Jobs."
#define CALL_ACTORS     "io.troupe.Actors."

/* How long an answer may take unless --timeout= says otherwise. */
#define CALL_TIMEOUT (30 * USEC_PER_SEC)

/*
 * `method` and its parameters (taken over; NULL = none); the answer's parameters in `*ret`, the
 * caller's. `patient`: no time-out of its own, the answer comes when something is complete.
 */
int call(struct invocation *invocation, const char *method, json_t *parameters, bool patient,
         json_t **ret);

/* The same, patiently; but when --timeout= runs out, nothing is said: EXIT_TIMEOUT. */
int call_wait(struct invocation *invocation, const char *method, json_t *parameters, json_t **ret);

/* The same, with the reply whatever it is: EXIT_OK for an error reply, too. End the reply with
 * varlink_reply_deinit(). */
int call_any(struct invocation *invocation, const char *method, json_t *parameters,
             struct varlink_reply *ret);

/*
 * The same with "more": `each` gets the parameters (borrowed) of every reply; anything but EXIT_OK
 * from it ends the call. EXIT_OK when the last reply has come.
 */
typedef int (*call_reply_fn)(struct invocation *invocation, const json_t *parameters, bool last,
                             void *userdata);
int call_more(struct invocation *invocation, const char *method, json_t *parameters,
              call_reply_fn each, void *userdata);

/* The same for an answer that comes in parts, one soon after the other. */
int call_parts(struct invocation *invocation, const char *method, json_t *parameters,
               call_reply_fn each, void *userdata);

/* --json: a document on standard output, indented for people only. */
int call_print_json(const struct invocation *invocation, const json_t *document);
/* --json of streams: one line, written out at once. */
int call_print_json_line(const json_t *document);

/* What "out of memory" is told as. */
int call_no_memory(void);

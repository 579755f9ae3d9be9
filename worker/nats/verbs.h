/* SPDX-License-Identifier: MIT */
#pragma once

/* What troupe-nats does besides `serve`. Functions return an exit status of client.h. */

#include "shared/base/clock.h"
#include "worker/nats/client.h"
#include "worker/nats/config.h"

/*
 * Makes the stream of jobs, that of results, the consumer of the group, and the bucket of
 * bucket.h; leaves those alone that exist. Waits for the server.
 */
int setup(const struct config *config);

/* A job, as troupe-nats(8) describes it for any client. Texts are borrowed. NULL = not given. */
struct create {
    const char *group;
    const char *id; /* of the message: with it, it may be sent again */
    const char *key;
    const char *priority, *delay, *timeout;
};

/* Sends a job whose payload is standard input, and prints the job's id, or {"id":
 * "STREAM:SEQUENCE", "stored_before": BOOL}. */
int create_job(const struct config *config, const struct create *create,
               const struct output *output);
/* Like create_job(), then like await_job(), which alone prints. */
int create_and_await_job(const struct config *config, const struct create *create,
                         const struct output *output);
/*
 * Waits for the job `id`, STREAM:SEQUENCE, until the stream of results has stored its result: the
 * first one counts, whatever else is published. Prints the result, or why the job did not succeed,
 * or {"job": {…}} with members of type Job in troupe-varlink(7). SIGINT ends the program.
 * CLIENT_FAILED unless the job has succeeded.
 */
int await_job(const struct config *config, const char *id, usec_t timeout,
              const struct output *output);

/*
 * Prints all machines as a table, or {"machines": […]} by name, each
 * {"name": …, "state": …, "seen_at": …, "version": …, "groups": […], "bridges": {GROUP: STATE}}. A
 * state is "up", "stopped" or "dead"; groups are as in bucket.h, and absent unless the machine
 * is up. CLIENT_FAILED: a machine is dead, or a group is in trouble.
 */
int cluster_show(const struct config *config, const struct output *output);

/* Removes a machine that is not up. */
int cluster_forget(const struct config *config, const char *machine);

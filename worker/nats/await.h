/* SPDX-License-Identifier: MIT */
#pragma once

/* Waits for the result of a job, whichever machine does it. */

#include "shared/base/clock.h"
#include "worker/nats/client.h"
#include "worker/nats/config.h"

/*
 * Waits for the job `id`, STREAM:SEQUENCE, until the stream of results has stored its result: the
 * first one counts, whatever else is published. Prints the result, or why the job did not succeed,
 * or {"job": {…}} with members of type Job in troupe-varlink(7). SIGINT ends the program. Returns a
 * status of client.h, CLIENT_FAILED unless the job has succeeded.
 */
int await_job(const struct config *config, const char *id, usec_t timeout,
              const struct output *output);

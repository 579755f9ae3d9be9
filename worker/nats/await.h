/* SPDX-License-Identifier: MIT */
#pragma once

/* Waits for the result of a job, whichever machine does it. */

#include "shared/base/clock.h"
#include "worker/nats/config.h"

/*
 * `id` is STREAM:SEQUENCE. Prints {"job": {…}} once the stream of results has stored it: the first
 * one counts, whatever else is published. The members are those of type Job in troupe-varlink(7).
 * Returns a status of client.h, CLIENT_OK however the job has ended.
 */
int await_job(const struct config *config, const char *id, usec_t timeout);

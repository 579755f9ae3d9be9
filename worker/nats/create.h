/* SPDX-License-Identifier: MIT */
#pragma once

/* Sends a job, as troupe-nats(8) describes it for any client. */

#include "worker/nats/client.h"
#include "worker/nats/config.h"

/* Texts are borrowed. NULL = not given. */
struct create {
    const char *group;
    const char *id; /* of the message: with it, it may be sent again */
    const char *key;
    const char *priority, *delay, *timeout;
};

/* Reads the payload from standard input, and prints the job's id, or {"id": "STREAM:SEQUENCE",
 * "stored_before": BOOL}. Returns a status of client.h. */
int create_job(const struct config *config, const struct create *create,
               const struct output *output);

/* Like create_job(), then like await_job(), which alone prints. */
int create_and_await_job(const struct config *config, const struct create *create,
                         const struct output *output);

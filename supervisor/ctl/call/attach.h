/* SPDX-License-Identifier: MIT */
#pragma once

/* Attaches to the supervisor through libtroupe, for payloads and results of any size. */

#include "shared/base/clock.h"
#include "worker/troupe.h"

struct invocation;
struct options;
struct reconnect;

struct attachment_client {
    struct troupe_client *client;
    uint64_t group;
};

/* How a group keeps its jobs. */
struct attach_durability {
    bool durable;     /* Durable=yes */
    usec_t ids_known; /* if durable: how long the id of an ended job is known, if kept; or 0 */
};

/*
 * Connects and finds the group; tries again if the supervisor ends during that. On failure prints
 * why, unless interrupted, and leaves `ret->client` NULL; otherwise the caller frees that. Returns
 * an exit status.
 */
int attach_group(struct invocation *invocation, const char *group, struct attachment_client *ret,
                 struct reconnect *reconnect);

/* Asks about the group of the first operand over the socket; tries again if the supervisor
 * ends during that. Returns an exit status. */
int attach_ask_durability(struct invocation *invocation, struct attach_durability *ret);

/*
 * Replaces a client whose connection was lost by a new one, as soon as a supervisor answers.
 * Without success prints why, unless interrupted, and leaves `client->client` NULL. Returns an exit
 * status.
 */
int attach_again(struct invocation *invocation, const char *group, struct attachment_client *client,
                 struct reconnect *reconnect);

/*
 * Ids for jobs, made before they are sent: only a job whose id is known can be found again after
 * the connection was lost. They look like those that the supervisor makes.
 */
struct attach_ids {
    uint64_t high, low;
};

struct attach_ids attach_ids_make(void);
/* Writes the n-th id and returns `text`. */
const char *attach_ids_format(const struct attach_ids *ids, uint64_t n, char text[TROUPE_ID_SIZE]);

/* The job options of the command line as libtroupe takes them. */
struct troupe_job_options attach_job_options(const struct options *options);

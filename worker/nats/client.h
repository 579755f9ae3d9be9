/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A short connection to NATS for setup and cluster: it waits for answers instead of running a loop.
 * Functions log why something failed, and return an exit status of troupectl.
 */

#include "worker/nats/config.h"
#include <jansson.h>
#include <nats/nats.h>

enum client_status {
    CLIENT_OK = 0,
    CLIENT_FAILED = 1,
    CLIENT_UNREACHABLE = 3,
    CLIENT_NOT_PERMITTED = 4,
    CLIENT_NOT_FOUND = 5,
};

/* How long to wait for the answer to one request. */
#define CLIENT_WAIT_MS 5000

struct client {
    natsOptions *options;
    natsConnection *connection;
    jsCtx *js;
};

/* clang-format off */
#define CLIENT_NULL {0}
/* clang-format on */

/* The caller calls client_close() in either case. */
int client_open(struct client *client, const struct config *config);
void client_close(struct client *client);

/* Logs that `what` failed because of `s`, or because this user lacks a permission, which the server
 * reports apart from answers. Returns the status for it. */
int client_fail(const struct client *client, const char *what, natsStatus s);

/* Sends a request to the API. Returns NATS_OK and the answer as JSON, which the caller frees. */
natsStatus client_ask(const struct client *client, const char *subject, const char *question,
                      json_t **ret);

/* Asks a stream for its first message from `sequence` on whose subject matches `filter`. Returns
 * NATS_OK and the answer as JSON, which the caller frees: with a member "message", or an error. */
natsStatus client_find_message(const struct client *client, const char *stream, const char *filter,
                               json_int_t sequence, json_t **ret);
/* The number of the error in such an answer; 0 = it is none. */
json_int_t client_error_code(const json_t *reply);

/* Finishes the output, after printing the document in one line, unless it is NULL. Takes it over.
 */
int client_finish(json_t *document);

/* ---- the verbs: functions return an exit status ---- */

/*
 * Makes the stream of jobs, that of results, the consumer of the group, and the bucket of
 * report.h; leaves those alone that exist.
 */
int setup(const struct config *config);

/*
 * Prints all machines as a table, or with `json` {"machines": […]} by name, each
 * {"name": …, "state": …, "seen_at": …, "version": …, "groups": […], "bridges": {GROUP: STATE}}. A
 * state is "up", "stopped" or "dead"; groups are as in report.h, and absent unless the machine
 * is up. CLIENT_FAILED: a machine is dead, or a group is in trouble.
 */
int cluster_show(const struct config *config, bool json);

/* Removes a machine that is not up. */
int cluster_forget(const struct config *config, const char *machine);

/* SPDX-License-Identifier: MIT */
#pragma once

/* An attached client: a pair of rings that lives as long as the client's Varlink connection. The
 * client submits, cancels and awaits jobs, and sends messages. */

#include "supervisor/channel/endpoint.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct actor;
struct attachment;
struct group;
struct group_context;
struct held;
struct job;
struct record;
struct saved_reader;
struct saver;
struct task;

struct attachment_options {
    uid_t uid;                /* of the client's process */
    int connection;           /* the client's Varlink connection, borrowed */
    uint32_t spin_usec;       /* SpinUsec= */
    struct blob_share *blobs; /* the share that the client's payloads are counted in */
    /* Whether the client may read the result of this job. */
    bool (*may_read)(void *userdata, const struct job *job);
    /* Returns whether a client that may not change things may create jobs in the group. */
    bool (*may_submit)(void *userdata, const struct group *group);
    /* Called from the loop when the client broke the protocol of the rings. Closes the connection,
     * which frees the attachment. */
    void (*broken)(void *userdata, const char *what);
    void *userdata;
    bool passing; /* its right is not known to the next supervisor: it ends with this one */
};

/* Makes the rings. `*ret_fds` are for the client; after sending them, call attachment_sent(), which
 * also has the keeper hold the rings and the connection. The client may change things until
 * attachment_set_may_change() forbids it; then it may still create jobs where may_submit() returns
 * true, and cancel its own jobs there. Returns 0 or -errno. */
int attachment_new(struct attachment **ret, const struct group_context *context,
                   const struct attachment_options *client, struct endpoint_fds *ret_fds);
void attachment_sent(struct attachment *attachment, struct endpoint_fds *fds);

/* After a crash: continues with a client of the former supervisor, which keeps its rings and its
 * address. Jobs that the client waits for are not known any more: its library knows which, and
 * waits for them again by id, or ends them. Takes over `held`, of the kind HOLDING_CLIENT, also on
 * error. 0, -EPROTO, or another -errno. */
int attachment_adopt(struct attachment **ret, const struct group_context *context,
                     const struct attachment_options *client, struct held *held);
/* Takes the descriptor of the connection out of what is held. -1 = there is none. */
int attachment_take_connection(struct held *held);

/* The connection is used for other calls. Their answers cannot come after a crash, so the client
 * must see the connection end: the keeper holds it no more. Idempotent. */
void attachment_drop_holding(struct attachment *attachment);

/* Takes effect immediately, also for requests that wait for room. */
void attachment_set_may_change(struct attachment *attachment, bool may_change);

/* Sends immediately what waits for further records: the supervisor ends. */
void attachment_flush(struct attachment *attachment);

/* The client's address as an actor: '@' and its number, which counts from 1. */
#define CLIENT_NAME_SIZE  24 /* with the NUL */
#define CLIENT_NUMBER_MAX ((uint64_t)INT64_MAX / 2)

/* Writes the address with its NUL. `number` counts from 1, at most CLIENT_NUMBER_MAX. */
void client_name_write(char ret[CLIENT_NAME_SIZE], uint64_t number);
/* Returns whether client_name_write() can have written it, with a number from 1 to
 * CLIENT_NUMBER_MAX; then sets `*ret`. */
bool client_name_read(const char *name, uint64_t *ret);

/* The client's address, "@3"; borrowed. */
const char *attachment_address(const struct attachment *attachment);

/* The connection has ended. Handles records that the client published before, at most one turn's
 * share. Returns whether all are handled; else `again`, which must call it again, is queued when
 * there are more to handle. */
bool attachment_finish(struct attachment *attachment, struct task *again);

/* Its jobs continue without it. NULL allowed; returns NULL. */
struct attachment *attachment_free(struct attachment *attachment);

/* ---- across an upgrade: each request that was read is answered once ---- */

extern const struct record CLIENT_SUBMIT_RECORD, CLIENT_WAIT_RECORD;

#define CLIENT_SUBMIT_ROW "client-submit" /* the submission that waits for room */
#define CLIENT_WAIT_ROW   "client-wait"   /* for the end of a job, or for its row */

/* Saves it, if the actor is a client. What waits for durable jobs to be written has been answered,
 * unless the store does not work. */
void attachment_save(const struct actor *actor, struct saver *saver);

/* Forgets the requests that were saved: the next supervisor answers them. When this one closes its
 * store, it would otherwise refuse those whose ends could not be written. */
void attachments_drop_saved(const struct group_context *context);

/* Once clients and jobs are there; durable jobs may still be read. Rows of clients that are gone
 * are skipped. Return 0, -EBADMSG, or -ENOMEM. */
int attachment_submit_restore_row(const struct group_context *context, struct saved_reader *row);
int attachment_wait_restore_row(const struct group_context *context, struct saved_reader *row);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An attached client: its own pair of rings, for as long as its Varlink connection lives. It
 * submits, cancels and watches; what it is owed and does not fetch is bounded by what it submitted.
 */

#include "supervisor/channel/endpoint.h"

struct attachment;
struct context;
struct peer;

struct attachment_options {
    const struct peer *peer;  /* borrowed */
    struct blob_share *blobs; /* what the client's payloads count for */
    void (*broken)(void *userdata, const char *what);
    void *userdata;
};

/*
 * Makes the rings. `*ret_fds` are for the client: close the control end after sending
 * (attachment_sent()). `broken` is called from the loop when the client broke the protocol: the
 * connection is to be closed (which frees the attachment). It may submit and cancel
 * (attachment_set_may_change()). 0 or -errno.
 */
int attachment_new(struct attachment **ret, struct context *context,
                   const struct attachment_options *client, struct endpoint_fds *ret_fds);
void attachment_sent(struct attachment *attachment, struct endpoint_fds *fds);

/* From now on; requests that wait for room are judged anew. */
void attachment_set_may_change(struct attachment *attachment, bool may_change);

/* The client's as an actor, "@3"; borrowed. */
const char *attachment_address(const struct attachment *attachment);

/* Its jobs go on without it. NULL allowed; returns NULL. */
struct attachment *attachment_free(struct attachment *attachment);

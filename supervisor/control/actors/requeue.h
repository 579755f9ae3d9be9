/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sends dead letters again: messages to their recipient with their sender, dead jobs as new jobs. A
 * letter that cannot be sent stays.
 */

#include "shared/protocol/protocol.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include <stdint.h>

struct control_context;

/* Letters that are sent, and what has become of them. A dead job that is sent to a durable group is
 * pending until the new job is on disk, in the transaction that removes the letter. */
struct requeue {
    struct control_context *context;
    const char *to; /* address; NULL = the recipient of each. Borrowed */
    uint64_t n_requeued, n_failed;
    char problem[256];          /* why the last one failed */
    char job[PROTOCOL_ID_TEXT]; /* the new id of the last job */
    struct list pending;
    /* Called when nothing is pending any more; may free the requeue. */
    void (*settled)(struct requeue *requeue);
};

void requeue_init(struct requeue *requeue, struct control_context *context, const char *to);
/* Does not stop pending requeues. */
void requeue_deinit(struct requeue *requeue);

/* Sends a letter, and frees it unless that fails. settled() is not called from within. */
void requeue_letter(struct requeue *requeue, struct dead_letter *letter);

static inline bool requeue_is_pending(const struct requeue *requeue)
{
    return !list_empty(&requeue->pending);
}

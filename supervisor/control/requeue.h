/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Dead letters sent again: messages to their recipient, with their sender, dead jobs as new jobs.
 * What cannot be sent stays a dead letter.
 */

#include "shared/protocol/protocol.h"
#include "supervisor/message/dead-letter.h"
#include <stdint.h>

struct context;

/* In one turn: nobody is to wait for a requeue of thousands. */
#define REQUEUE_MAX 256

struct requeue_result {
    uint64_t n_requeued, n_failed;
    uint64_t last;              /* 0 = all were met */
    char problem[256];          /* why the last one failed */
    char job[PROTOCOL_ID_TEXT]; /* the new id of the last job */
};

/* `to`: an address, NULL = the recipient. The message is gone unless it failed. */
void requeue_letter(struct context *context, struct dead_letter *letter, const char *to,
                    struct requeue_result *result);

/*
 * Those that match, behind id `after`, at most REQUEUE_MAX of them; result->last tells then behind
 * which id to go on. What they cause to die anew is not met in the same call.
 */
void requeue_letters(struct context *context, const struct dead_letter_filter *filter,
                     const char *to, uint64_t after, struct requeue_result *result);

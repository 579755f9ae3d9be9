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

struct requeue_result {
    uint64_t n_requeued, n_failed;
    char problem[256];          /* why the last one failed */
    char job[PROTOCOL_ID_TEXT]; /* the new id of the last job */
};

/* Sends a letter to the address `to` (NULL = its recipient), and frees it unless that fails. */
void requeue_letter(struct control_context *context, struct dead_letter *letter, const char *to,
                    struct requeue_result *result);

/* SPDX-License-Identifier: MIT */
#pragma once

/* What attached clients wait for, across an upgrade: each request that was read is answered once.
 */

#include "supervisor/succession/record.h"

struct actor;
struct group_context;

extern const struct record CLIENT_SUBMIT_RECORD, CLIENT_WAIT_RECORD, CLIENT_ANSWER_RECORD;

#define CLIENT_SUBMIT_ROW "client-submit" /* the submission that waits for room */
#define CLIENT_WAIT_ROW   "client-wait"   /* for the end of a job, or for its row */
#define CLIENT_ANSWER_ROW "client-answer" /* that found no room */

/* Saves it, if the actor is a client. What waits for durable jobs to be written has been answered,
 * unless the store does not work. Returns 0 or -errno of the saver. */
int attachment_save(const struct actor *actor, struct saver *saver);

/* Forgets the requests that were saved: the next supervisor answers them. When this one closes its
 * store, it would otherwise refuse those whose ends could not be written. */
void attachments_drop_saved(const struct group_context *context);

/* Once clients and jobs are there; durable jobs may still be read. Rows of clients that are gone
 * are skipped. Return 0, -EBADMSG, or -ENOMEM. */
int attachment_submit_restore_row(const struct group_context *context, struct saved_reader *row);
int attachment_wait_restore_row(const struct group_context *context, struct saved_reader *row);
int attachment_answer_restore_row(const struct group_context *context, struct saved_reader *row);

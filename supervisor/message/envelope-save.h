/* SPDX-License-Identifier: MIT */
#pragma once

/* Messages and answers as fields of saved rows; the payload is the row's. */

#include "supervisor/message/envelope.h"
#include "supervisor/succession/record.h"

extern const struct record ENVELOPE_RECORD; /* but its topic and payload */

/* Appends the fields of a message, but not its payload, to a row. */
void envelope_put(struct saved_writer *row, const struct envelope *envelope);
/* Makes the message again, in no list and owned by the caller. Returns 0, -EBADMSG or -ENOMEM. */
int envelope_get(struct saved_reader *row, struct envelope **ret);

/* Write and read a topic, which then points into the row. Returns 0 or -EBADMSG. */
void topic_put(struct saved_writer *row, const struct topic *topic);
int topic_get(struct saved_reader *row, struct topic *ret);

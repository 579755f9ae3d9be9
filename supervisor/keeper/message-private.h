/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Internal interface between message.c and message-*.c: a message is put together and taken
 * apart piece by piece. An error is kept in the message, and turns all that follows into no-ops.
 */

#include "supervisor/keeper/message.h"

/* Overwrites the message with a kind and an id. */
void message_begin(struct message *message, enum message_kind kind, uint64_t id);
void message_put(struct message *message, const void *data, size_t size);
/* Fails with -E2BIG above `max`. */
void message_put_count(struct message *message, size_t n, size_t max);
void message_put_fd(struct message *message, int fd);

#define PUT(message, value) message_put(message, &(value), sizeof(value))

/* Returns the next `size` bytes in place, or NULL, with -EBADMSG, if the message is shorter. */
const void *message_skip(struct message *message, size_t size);
/* Copies them. Zeroes `*ret` if the message is shorter. */
void message_take(struct message *message, void *ret, size_t size);
/* Fails with -EBADMSG, and returns 0, above `max`. */
size_t message_take_count(struct message *message, size_t max);
/* Takes a byte: a bool must not hold anything but 0 or 1. */
bool message_take_bool(struct message *message);
/* Returns descriptor number `*i`, and increments it. */
int message_take_fd(struct message *message, size_t *i);
/* What is held: all but the id, and with it. The first descriptors are those that are held. */
void message_put_holding(struct message *message, const struct message_hold *hold);
void message_take_holding(struct message *message, struct message_hold *ret);
/* Like message_end(), and checks that there are `n` descriptors. */
int message_end_with_fds(struct message *message, size_t n);
/* Returns the message's error, or -EBADMSG if it is longer than what was taken. */
int message_end(struct message *message);

#define TAKE(message, variable) message_take(message, &(variable), sizeof(variable))

/* SPDX-License-Identifier: MIT */
#pragma once

/* Type, key and payload of a received message or reply, copied out of the ring. */

#include "shared/protocol/protocol-actors.h"

struct content {
    const char *type; /* NUL-terminated */
    const void *key;  /* NULL = none */
    uint32_t key_size;
    const void *payload; /* not NULL; 8-aligned; a NUL byte follows unless it is mapped */
    size_t size;
    size_t mapped_size; /* of a blob; 0 = none */
};

/* Returns the bytes that content_place() needs. */
size_t content_room(const struct protocol_content *wire);

/*
 * Copies the content to `room`, which is 8-aligned and outlives `*ret`, or maps a blob, received
 * from `control`. Returns 0, -EPROTO, -EMFILE, -ENOMEM, or another -errno of mmap(2).
 */
int content_place(struct content *ret, const struct protocol_content *wire, void *room,
                  int control);

/* Describes an error of content_place(). Returns NULL for an unknown one. */
const char *content_problem(int error);

/* Receives the descriptor of an unwanted blob, since that of the next blob follows it. Returns like
 * payload_receive_fd(). */
int content_discard(const struct protocol_content *wire, int control);

void content_deinit(struct content *content);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Type, key and payload of a message, out of the ring: what the program is shown, for as long as it
 * is shown it.
 */

#include "shared/protocol/protocol-actors.h"

struct content {
    const char *type; /* NUL-terminated */
    const void *key;  /* NULL = none */
    uint32_t key_size;
    const void *payload; /* never NULL; 8-aligned; a NUL byte follows unless it is mapped */
    size_t size;
    size_t mapped_size; /* 0: the payload is no blob */
};

/* Bytes that content_place() needs. */
size_t content_room(const struct protocol_content *wire);

/*
 * Copies what the record has to `room`, which is 8-aligned and outlives the content; takes a blob's
 * descriptor from `control` and maps it. 0, -EPROTO, -EMFILE, -ENOMEM and what mmap(2) says.
 */
int content_place(struct content *ret, const struct protocol_content *wire, void *room,
                  int control);

void content_deinit(struct content *content);

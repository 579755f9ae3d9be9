/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A payload on its way out that is too large for a record: memory to fill, then sealed and sent by
 * descriptor. Both sides of the library use it: workers for results, clients for jobs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob {
    int fd;
    void *data; /* unmapped once sealed */
    size_t size;
    bool sealed;
};

/* clang-format off */
#define BLOB_NULL {.fd = -1}
/* clang-format on */

/* 0, -EINVAL for size 0, -EMSGSIZE, or what memfd_create(2) and mmap(2) say. */
int blob_new(struct blob *ret, size_t size);

/* Made, filled with a copy of `data`, and sealed. */
int blob_copy(struct blob *ret, const void *data, size_t size);

/* From here on nobody can change it. Nothing happens the second time. */
int blob_seal(struct blob *blob);

/*
 * Sends the descriptor of a sealed blob. Returns 0, -EAGAIN when the peer must first take others
 * or, after a pause, when too many of this user's are in flight, -EPIPE when the peer is gone.
 */
int blob_send(const struct blob *blob, int socket, uint64_t serial);

/* Whether blob_send() is likely to succeed; waits for that for so long (-1: without limit). */
bool blob_sendable(int socket, int timeout_ms);

void blob_deinit(struct blob *blob);

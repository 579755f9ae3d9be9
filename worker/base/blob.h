/* SPDX-License-Identifier: MIT */
#pragma once

/* A payload to send that is too large for a record: memory to fill, sealed, sent by descriptor. */

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

/* Maps memory to fill. Returns 0, -EINVAL for size 0, -EMSGSIZE, or another -errno. */
int blob_new(struct blob *ret, size_t size);

/* Makes a sealed blob with a copy of `data`. Returns 0 or -errno like blob_new(). */
int blob_copy(struct blob *ret, const void *data, size_t size);

/* Unmaps the memory and forbids all changes. Returns 0 or -errno. */
int blob_seal(struct blob *blob);

/*
 * Sends the descriptor of a sealed blob. Returns 0, -EAGAIN if the peer must first take other
 * descriptors or, after a pause, if too many of this user's are in flight, -EPIPE if the peer is
 * gone.
 */
int blob_send(const struct blob *blob, int socket, uint64_t serial);

/* Waits until blob_send() is likely to succeed. Returns whether it is. */
bool blob_sendable(int socket, int timeout_ms);

void blob_deinit(struct blob *blob);

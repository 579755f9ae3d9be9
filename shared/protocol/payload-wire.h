/* SPDX-License-Identifier: MIT */
#pragma once

/* The bytes of a message, job or result. Up to InlineMax they travel inside the record (fields.h);
 * above it as a sealed memfd ("blob") that is passed by descriptor and never copied.
 *
 * The descriptor of serial n is the n-th one sent over the control socket of that channel in that
 * direction, counted from 1; it is sent before the record that names it is published, so that it is
 * there when the record is read. */

#include <stddef.h>
#include <stdint.h>

enum payload_form {
    PAYLOAD_INLINE = 0,
    PAYLOAD_BLOB = 1,
};

#define PAYLOAD_BLOB_MAX ((uint64_t)1 << 40)

/* A payload as a record contains it. `data` is borrowed from the record. */
struct payload_wire {
    enum payload_form form;
    const void *data; /* inline */
    uint64_t size;
    uint64_t serial; /* blob */
};

/* The maximum size of a payload in a record without its inline data. */
#define PAYLOAD_FIXED 25u

/* A blob under construction: a memfd of `size` bytes mapped writable at `*ret_data`. 0, -EINVAL for
 * size 0 or above PAYLOAD_BLOB_MAX, or -errno. The descriptor is the caller's; payload_blob_seal()
 * ends the mapping. */
int payload_blob_new(size_t size, int *ret_fd, void **ret_data);

/* Unmaps, then seals against any change (WRITE, SHRINK, GROW, SEAL). */
int payload_blob_seal(int fd, void *data, size_t size);

/* A sealed blob with a copy of `data`; the descriptor is the caller's. Uses write(2), which takes
 * half the time of filling a mapping, since the kernel need not clear the pages first. 0, -EINVAL
 * like payload_blob_new(), or -errno. */
int payload_blob_copy(const void *data, size_t size, int *ret_fd);

/* Checks a descriptor from an untrusted peer: it must be a memfd with all four seals, of exactly
 * `size` bytes (at least one), readable, without memory beyond its end. 0 or -EPROTO. */
int payload_blob_check(int fd, uint64_t size);

/* Maps a checked blob read-only. `size` 0 is refused with -EINVAL. munmap(2) ends it. */
int payload_blob_map(int fd, size_t size, const void **ret_data);

/* Sends one descriptor (the caller keeps it) with its serial over a SOCK_SEQPACKET control socket.
 * Does not wait: -EAGAIN when the peer's buffer is full. Never raises SIGPIPE. */
int payload_send_fd(int socket, int fd, uint64_t serial);

/* A serial that means the next inbox (shared/ring/channel.h). */
#define PAYLOAD_SERIAL_INBOX UINT64_MAX

/* Like payload_receive_fd(), but receives the next descriptor with any serial. */
int payload_receive_any(int socket, uint64_t *ret_serial, void (*drop)(int fd), int *ret_fd);

/* Receives the next descriptor, which must be alone, close-on-exec, and carry `serial`. Does not
 * wait. 0 and the caller owns `*ret_fd`; -EPROTO for anything else, or for no message; -EMFILE if
 * this process has no descriptor left for it, which is then lost. `drop` closes all other
 * descriptors: payload_drop_fd() if the caller may wait. */
int payload_receive_fd(int socket, uint64_t serial, void (*drop)(int fd), int *ret_fd);

/* close(2), for callers that trust the sender. */
void payload_drop_fd(int fd);

/* Receives, checks and maps the next descriptor: payload_receive_fd(), _blob_check(), _blob_map().
 */
int payload_receive_blob(int socket, const struct payload_wire *wire, const void **ret_data);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A connection over loopback with a buffer each way: what is put is sent by stream_flush(), what is
 * read comes out of the buffer before the socket is asked. Functions return 0 or -errno; -EPIPE
 * when the other side has closed.
 */

#include <stddef.h>
#include <stdint.h>

struct stream {
    int fd;
    char *in, *out;
    size_t in_begin, in_end, in_max;
    size_t out_size, out_max;
};

/* To 127.0.0.1, a port in decimal digits; without Nagle's delay. The end of the process closes it.
 */
int stream_open(struct stream *stream, const char *port);

int stream_put(struct stream *stream, const void *data, size_t size);
int stream_printf(struct stream *stream, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int stream_flush(struct stream *stream);

/* Whether something is to be read: in the buffer, or by now on the socket. */
int stream_ready(struct stream *stream);

/* Pointers into the buffer, good until the next read. A line comes NUL-terminated, without CR LF.
 */
int stream_line(struct stream *stream, char **ret);
int stream_bytes(struct stream *stream, size_t size, char **ret);

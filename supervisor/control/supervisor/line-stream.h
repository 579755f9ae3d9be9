/* SPDX-License-Identifier: MIT */
#pragma once

/* The reply of GetLog: the array "lines" in parts, and with `follow` further lines as they come. */

#include "supervisor/event/event.h"
#include "supervisor/varlink/request-parts.h"
#include <stdbool.h>
#include <stddef.h>

/* Embedded in the state of the call, which is on the heap and zeroed. */
struct line_stream {
    struct request_parts parts;       /* the owner sets `write` and `free` */
    struct event_subscriber follower; /* the owner sets `fn`, which calls line_stream_send() */
    bool over;                        /* private */
};

/* Answers the request; the first part at once. */
void line_stream_begin(struct line_stream *stream, struct request *request, bool follow);

/* Begins a reply with one line; the caller adds that, and calls line_stream_sent(). */
struct reply *line_stream_reply(struct line_stream *stream);
void line_stream_sent(struct line_stream *stream);

/* No further line comes: ends the call once it has sent those that are kept. May free it. */
void line_stream_end(struct line_stream *stream);

/* To be called by `parts.free`. */
void line_stream_deinit(struct line_stream *stream);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sends what one job emits to one browser (server-sent events): first "here"; then "item" with an
 * Item of io.troupe.Jobs, whose time is the id of the event, and "dropped" with a number of items;
 * last "end" with the job. Each stream has a connection to the supervisor. A browser that falls
 * behind, or whose supervisor ends, is disconnected; it connects again with the header
 * Last-Event-ID.
 */

#include "supervisor/web/question.h"
#include <microhttpd.h>

#define ITEM_STREAMS_MAX  16
#define ITEM_STREAM_BYTES ((size_t)1 << 20) /* the most that a browser may not have read */

struct item_streams {
    struct questions *questions; /* borrowed */
    struct list streams;
    unsigned n_streams;
    usec_t heartbeat_at;
};

void item_streams_init(struct item_streams *streams, struct questions *questions);

/* Calls Jobs.Stream; takes ownership of `parameters`. The connection is suspended until
 * item_stream_answer() is due, unless that can be called at once (`*ret_ready`). Returns NULL when
 * out of memory, or if there are too many. */
struct item_stream *item_stream_new(struct item_streams *streams, struct MHD_Connection *connection,
                                    json_t *parameters, bool *ret_ready);
/* NULL allowed; returns NULL. */
struct item_stream *item_stream_free(struct item_stream *stream);

/* Begins the answer, or refuses the stream if the supervisor has. `only_headers`: for HEAD. */
enum MHD_Result item_stream_answer(struct item_stream *stream, bool only_headers);

/* Call item_streams_prepare() before the loop waits, and before questions_prepare();
 * item_streams_run() after it has waited. */
void item_streams_prepare(struct item_streams *streams, struct poller *poller);
void item_streams_run(struct item_streams *streams, const struct poller *poller, usec_t now);

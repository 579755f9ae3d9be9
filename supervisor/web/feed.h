/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Events of the supervisor as they happen, to any number of browsers (server-sent events). There is
 * one connection to the supervisor, and only while there are streams. All browsers share the kept
 * last events; a browser that falls further behind is disconnected, and connects again.
 *
 * Events of the stream: "here" at first, then "event" with an Event of io.troupe.Supervisor. When
 * the connection to the supervisor is lost, the streams end. A feed with the events of single jobs
 * sends "refused" if the user of troupe-web may not read them.
 */

#include "shared/base/list.h"
#include "supervisor/web/question.h"
#include <microhttpd.h>

#define FEED_STREAMS_MAX      48
#define FEED_JOBS_STREAMS_MAX 8
#define FEED_KEPT             512
#define FEED_KEPT_BYTES       ((size_t)4 << 20)

struct feed {
    struct questions *questions; /* borrowed */
    struct question question;    /* pending while there are streams */
    bool jobs;                   /* also events of single jobs */
    usec_t heartbeat_at;
    struct list streams;
    unsigned n_streams;
    /* The piece n, for n in [first, next), is pieces[n % FEED_KEPT]. */
    char *pieces[FEED_KEPT];
    uint64_t first, next;
    size_t bytes;
};

void feed_init(struct feed *feed, struct questions *questions, bool jobs);
void feed_deinit(struct feed *feed);

/* Begins a stream, or refuses it if there is no supervisor. If all places are taken, ends the
 * oldest stream of the address that has the most streams. `only_headers`: for HEAD. */
enum MHD_Result feed_answer(struct feed *feed, struct MHD_Connection *connection,
                            bool only_headers);

/* Call feed_prepare() before the loop waits, and before questions_prepare(); feed_run() after it
 * has waited. Streams end when the questions are stopped. */
void feed_prepare(struct feed *feed, struct poller *poller);
void feed_run(struct feed *feed, const struct poller *poller, usec_t now);

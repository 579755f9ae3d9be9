/* SPDX-License-Identifier: MIT */

/* The connection to the supervisor. */

#include "supervisor/web/feed.h"

#include "shared/base/cleanup.h"
#include "supervisor/web/feed-private.h"
#include "supervisor/web/view.h"
#include <stdio.h>
#include <string.h>

#define PAUSE_MIN (250 * USEC_PER_MSEC)
#define PAUSE_MAX (4 * USEC_PER_SEC)
/* In one turn: not more than what a browser is sent in it, or a flood would overtake those that
 * keep up. */
#define REPLIES_PER_TURN 16

void feed_init(struct feed *feed, const char *socket)
{
    *feed = (struct feed){.socket = socket, .client = VARLINK_CLIENT_NULL, .pause = PAUSE_MIN};
    list_init(&feed->streams);
}

void feed_deinit(struct feed *feed)
{
    varlink_client_deinit(&feed->client);
    feed_drop_pieces(feed);
}

/* The text of an event of the stream; the caller owns it. NULL = out of memory. */
static char *format(const char *type, const json_t *data)
{
    _cleanup_free_ char *text = data ? json_dumps(data, JSON_COMPACT) : NULL;
    char *piece;

    /* JSON has no line breaks outside of strings, and none inside. */
    if (!text || asprintf(&piece, "event: %s\ndata: %s\n\n", type, text) < 0)
        return NULL;
    return piece;
}

static void say(struct feed *feed, const char *type, json_t *data)
{
    feed_add(feed, format(type, data));
    json_decref(data);
}

static void lose(struct feed *feed, usec_t now)
{
    varlink_client_deinit(&feed->client);
    if (feed->here)
        say(feed, "away", json_object());
    feed->here = false;
    feed->retry_at = usec_add(now, feed->pause);
    feed->pause = feed->pause * 2 < PAUSE_MAX ? feed->pause * 2 : PAUSE_MAX;
}

static void connect_again(struct feed *feed, usec_t now)
{
    int r = varlink_client_init(&feed->client, feed->socket, 0);

    if (r == 0)
        r = varlink_client_send(&feed->client, "io.troupe.Supervisor.Watch", json_object(), true);
    if (r < 0) {
        lose(feed, now);
        return;
    }
    feed->here = true;
    say(feed, "here", json_object());
}

static void forward(struct feed *feed, const json_t *reply)
{
    json_t *event;
    size_t i;

    json_array_foreach(json_object_get(reply, "events"), i, event)
        say(feed, "event", view_event(event));
}

static void receive(struct feed *feed, usec_t now)
{
    feed->unfinished = false;
    for (unsigned n = 0; n < REPLIES_PER_TURN; n++) {
        struct varlink_reply reply;
        int r = varlink_client_receive(&feed->client, &reply);
        bool last;

        if (r == -ETIMEDOUT)
            return;
        if (r < 0) {
            lose(feed, now);
            return;
        }
        last = reply.error || !reply.continues;
        if (!reply.error) {
            forward(feed, reply.parameters);
            feed->pause = PAUSE_MIN;
        }
        varlink_reply_deinit(&reply);
        if (last) {
            lose(feed, now);
            return;
        }
    }
    feed->unfinished = true;
}

void feed_prepare(struct feed *feed, struct poller *poller)
{
    /* Replies that were read already do not make the descriptor readable; and the last stream may
     * have ended after feed_run(). */
    if (feed->client.fd >= 0 && (feed->unfinished || feed->n_streams == 0))
        poller_until(poller, 0);
    if (feed->n_streams == 0)
        return;
    if (feed->client.fd >= 0)
        poller_add(poller, feed->client.fd, POLLIN);
    else
        poller_until(poller, feed->retry_at);
    poller_until(poller, feed->heartbeat_at);
    feed_prepare_streams(feed, poller);
}

void feed_run(struct feed *feed, const struct poller *poller, usec_t now)
{
    feed_run_streams(feed, poller);
    if (feed->n_streams == 0) {
        varlink_client_deinit(&feed->client);
        feed->here = false;
        feed->retry_at = 0;
        feed->pause = PAUSE_MIN;
        return;
    }
    if (feed->client.fd < 0 && now >= feed->retry_at)
        connect_again(feed, now);
    if (feed->client.fd >= 0)
        receive(feed, now);
    if (now >= feed->heartbeat_at) {
        feed->heartbeat_at = usec_add(now, FEED_HEARTBEAT);
        feed_add(feed, strdup(": still here\n\n"));
    }
}

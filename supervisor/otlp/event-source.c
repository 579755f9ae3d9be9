/* SPDX-License-Identifier: MIT */
#include "supervisor/otlp/event-source.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include <stdio.h>
#include <string.h>

/* Replies that are taken before the exporter has its turn. */
#define REPLIES_PER_TURN 64
#define CONNECT_AGAIN    USEC_PER_SEC
/* After an error reply: a reload may remove its cause. */
#define ASK_AGAIN (10 * USEC_PER_SEC)

void event_source_init(struct event_source *source, const char *socket,
                       void (*take)(void *userdata, const json_t *event), void *userdata)
{
    *source = (struct event_source){
        .socket = socket, .client = VARLINK_CLIENT_NULL, .take = take, .userdata = userdata};
}

void event_source_deinit(struct event_source *source)
{
    varlink_client_deinit(&source->client);
}

/* Logs a problem once. */
static void lose(struct event_source *source, usec_t again_at, const char *problem)
{
    varlink_client_deinit(&source->client);
    source->connected = source->told = source->unfinished = false;
    source->again_at = again_at;
    if (strcmp(source->problem, problem) == 0)
        return;
    (void)snprintf(source->problem, sizeof(source->problem), "%s", problem);
    log_warning("no events of the supervisor: %s; trying again", source->problem);
}

static void connect_source(struct event_source *source, usec_t now)
{
    int r = varlink_client_init(&source->client, source->socket, 0);

    /* There is at least one past event, so the first reply comes at once, and shows that the call
     * is accepted. */
    if (r == 0)
        r = varlink_client_send(&source->client, "io.troupe.Supervisor.Watch",
                                json_pack("{s:b, s:b}", "traced", 1, "replay", 1), true);
    source->connected = r == 0;
    if (r < 0)
        lose(source, usec_add(now, CONNECT_AGAIN), strerror(-r));
}

static void take_reply(struct event_source *source, const struct varlink_reply *reply, usec_t now)
{
    const char *needed = json_string_value(json_object_get(reply->parameters, "needed"));
    const json_t *event;
    char text[160];
    size_t i;

    if (reply->error || !reply->continues) {
        (void)snprintf(text, sizeof(text), "%s%s%s",
                       reply->error ? reply->error : "the stream has ended",
                       needed ? ": this needs " : "", needed ? needed : "");
        lose(source, usec_add(now, ASK_AGAIN), text);
        return;
    }
    if (!source->told)
        log_info("watching jobs with a traceparent");
    source->told = true;
    source->problem[0] = '\0';
    json_array_foreach(json_object_get(reply->parameters, "events"), i, event)
    {
        source->take(source->userdata, event);
    }
}

void event_source_run(struct event_source *source, usec_t now)
{
    if (!source->connected && now >= source->again_at)
        connect_source(source, now);
    source->unfinished = false;
    for (unsigned n = 0; source->connected; n++) {
        struct varlink_reply reply;
        int r;

        if (n == REPLIES_PER_TURN) {
            source->unfinished = true;
            return;
        }
        r = varlink_client_receive(&source->client, &reply);
        if (r == -ETIMEDOUT)
            return;
        if (r < 0) {
            lose(source, usec_add(now, CONNECT_AGAIN), strerror(-r));
            return;
        }
        take_reply(source, &reply, now);
        varlink_reply_deinit(&reply);
    }
}

int event_source_fd(const struct event_source *source)
{
    return source->connected ? source->client.fd : -1;
}

usec_t event_source_deadline(const struct event_source *source)
{
    if (!source->connected)
        return source->again_at;
    return source->unfinished ? 0 : USEC_INFINITY;
}

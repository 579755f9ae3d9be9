/* SPDX-License-Identifier: MIT */
#include "supervisor/control/supervisor/line-stream.h"

#include "supervisor/control/control-context.h"

#define stream_of(pointer) list_entry(pointer, struct line_stream, parts)

static void stay(struct request_parts *parts)
{
    struct line_stream *stream = stream_of(parts);

    event_subscribe(&parts->request->context->events->line_subscribers, &stream->follower);
    if (stream->over)
        line_stream_end(stream);
}

void line_stream_begin(struct line_stream *stream, struct request *request, bool follow)
{
    stream->parts.array = "lines";
    stream->parts.may_continue = true;
    stream->parts.stay = follow ? stay : NULL;
    list_init(&stream->follower.link);
    request_in_parts(request, &stream->parts);
}

struct reply *line_stream_reply(struct line_stream *stream)
{
    struct reply *reply = request_begin(stream->parts.request);

    reply_array(reply, "lines");
    return reply;
}

void line_stream_sent(struct line_stream *stream)
{
    reply_end_array(&stream->parts.request->reply);
    request_end_more(stream->parts.request);
}

void line_stream_end(struct line_stream *stream)
{
    stream->over = true;
    if (!list_linked(&stream->follower.link))
        return;
    reply_end_array(line_stream_reply(stream));
    request_end(stream->parts.request);
}

void line_stream_deinit(struct line_stream *stream)
{
    event_unsubscribe(&stream->follower);
}

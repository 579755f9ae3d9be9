/* SPDX-License-Identifier: MIT */
#include "supervisor/web/item-stream.h"

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include "supervisor/web/answer.h"
#include "supervisor/web/seat.h"
#include "supervisor/web/visitor.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How often something is sent: only then is a browser noticed that has gone without closing. */
#define HEARTBEAT (15 * USEC_PER_SEC)

/* What each stream begins with: the browser knows that it is permitted. */
#define GREETING "event: here\ndata: {}\n\n"

struct item_stream {
    struct seat seat;
    struct item_streams *streams;
    size_t place; /* in the poller */
    struct question question;
    struct buffer text; /* for the browser */
    size_t offset;      /* how much of it is sent */
    bool begun;         /* GREETING is in the text, or was */
    bool suspended;
};

static void wake(struct item_stream *stream)
{
    if (!stream->suspended)
        return;
    stream->suspended = false;
    MHD_resume_connection(stream->seat.connection);
}

static void sleep_on(struct item_stream *stream)
{
    stream->suspended = true;
    MHD_suspend_connection(stream->seat.connection);
}

/* The library asks for more only when the browser reads. */
static void end_if_behind(struct item_stream *stream)
{
    if (stream->seat.over || (!stream->text.failed && stream->text.size <= ITEM_STREAM_BYTES))
        return;
    stream->seat.over = true;
    visitor_end(stream->seat.connection);
}

/* ---- from the supervisor ---- */

/* JSON has no line breaks outside of strings, and none inside. */
static void add_event(struct item_stream *stream, const char *type, int64_t id, const json_t *data)
{
    _cleanup_free_ char *text = json_dumps(data, JSON_COMPACT | JSON_ENCODE_ANY);
    char head[64] = "";

    if (id > 0)
        (void)snprintf(head, sizeof(head), "id: %" PRId64 "\n", id);
    buffer_add_string(&stream->text, head);
    buffer_add_string(&stream->text, "event: ");
    buffer_add_string(&stream->text, type);
    buffer_add_string(&stream->text, "\ndata: ");
    buffer_add_string(&stream->text, text ? text : "null");
    buffer_add_string(&stream->text, "\n\n");
}

static void add_reply(struct item_stream *stream, const json_t *reply)
{
    const json_t *dropped = json_object_get(reply, "dropped"), *job = json_object_get(reply, "job");
    const json_t *item;
    size_t i;

    if (dropped)
        add_event(stream, "dropped", 0, dropped);
    json_array_foreach(json_object_get(reply, "items"), i, item)
    {
        add_event(stream, "item", json_integer_value(json_object_get(item, "at")), item);
    }
    if (job)
        add_event(stream, "end", 0, job);
    end_if_behind(stream);
}

static int on_reply(struct question *question, const json_t *reply)
{
    struct item_stream *stream = list_entry(question, struct item_stream, question);

    if (!stream->begun)
        buffer_add_string(&stream->text, GREETING);
    stream->begun = true;
    add_reply(stream, reply);
    wake(stream);
    return 0;
}

/* The last reply was also given to on_reply(). */
static void on_end(struct question *question)
{
    struct item_stream *stream = list_entry(question, struct item_stream, question);

    stream->seat.over = true;
    wake(stream);
}

/* ---- to the browser ---- */

static ssize_t read_text(void *userdata, uint64_t position, char *buffer, size_t max)
{
    struct item_stream *stream = userdata;
    struct buffer *text = &stream->text;
    const size_t left = text->size - stream->offset, size = left < max ? left : max;

    if (size > 0)
        memcpy(buffer, text->bytes + stream->offset, size);
    stream->offset += size;
    if (stream->offset == text->size)
        stream->offset = text->size = 0;
    if (size > 0)
        return (ssize_t)size;
    if (stream->seat.over)
        return MHD_CONTENT_READER_END_OF_STREAM;
    sleep_on(stream);
    return 0;
}

enum MHD_Result item_stream_answer(struct item_stream *stream, bool only_headers)
{
    const struct question *question = &stream->question;
    struct MHD_Response *response;

    if (stream->text.size == 0 && question->failure < 0)
        return answer_failure(stream->seat.connection, stream->streams->questions->socket,
                              question->failure);
    if (question->reply.error)
        return answer_error(stream->seat.connection, &question->reply);
    response = only_headers ? MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT)
                            : MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_text,
                                                                stream, NULL);
    visitor_begin(stream->seat.connection, VISITOR_STREAM);
    return answer_stream(stream->seat.connection, response);
}

/* ---- life ---- */

static void make_room(const struct item_streams *streams)
{
    struct seat *given_up = seat_make_room(&streams->streams, ITEM_STREAMS_MAX);

    if (given_up)
        wake(list_entry(given_up, struct item_stream, seat));
}

struct item_stream *item_stream_new(struct item_streams *streams, struct MHD_Connection *connection,
                                    json_t *parameters, bool *ret_ready)
{
    /* Those that were given up may not have ended yet. */
    const bool full = streams->n_streams >= 2 * ITEM_STREAMS_MAX;
    struct item_stream *stream = full ? NULL : calloc(1, sizeof(*stream));

    if (!stream) {
        json_decref(parameters);
        return NULL;
    }
    make_room(streams);
    seat_take(&stream->seat, &streams->streams, connection);
    stream->streams = streams;
    stream->place = POLLER_MAX;
    question_init(&stream->question, on_end);
    stream->question.part = on_reply;
    stream->question.timeout = USEC_INFINITY;
    if (streams->n_streams++ == 0)
        streams->heartbeat_at = clock_deadline(HEARTBEAT);
    questions_ask(streams->questions, &stream->question, "io.troupe.Jobs.Stream", parameters,
                  clock_now());
    *ret_ready = stream->seat.over;
    if (!stream->seat.over)
        sleep_on(stream);
    return stream;
}

struct item_stream *item_stream_free(struct item_stream *stream)
{
    if (!stream)
        return NULL;
    list_unlink(&stream->seat.node);
    stream->streams->n_streams--;
    question_deinit(&stream->question);
    buffer_deinit(&stream->text);
    free(stream);
    return NULL;
}

void item_streams_init(struct item_streams *streams, struct questions *questions)
{
    *streams = (struct item_streams){.questions = questions};
    list_init(&streams->streams);
}

void item_streams_prepare(struct item_streams *streams, struct poller *poller)
{
    if (streams->n_streams > 0)
        poller_until(poller, streams->heartbeat_at);
    list_for_each_entry (stream, &streams->streams, struct item_stream, seat.node)
        stream->place =
            stream->suspended ? poller_add(poller, stream->seat.fd, POLLRDHUP) : POLLER_MAX;
}

void item_streams_run(struct item_streams *streams, const struct poller *poller, usec_t now)
{
    const bool beats = streams->n_streams > 0 && now >= streams->heartbeat_at;

    if (beats)
        streams->heartbeat_at = usec_add(now, HEARTBEAT);
    list_for_each_entry (stream, &streams->streams, struct item_stream, seat.node) {
        const bool gone = poller_events(poller, stream->place) != 0;

        stream->seat.over |= gone;
        if (beats && stream->begun)
            buffer_add_string(&stream->text, ": still here\n\n");
        if ((beats && stream->begun) || gone)
            wake(stream);
    }
}

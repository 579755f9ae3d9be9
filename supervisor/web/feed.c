/* SPDX-License-Identifier: MIT */
#include "supervisor/web/feed.h"

#include "shared/base/cleanup.h"
#include "supervisor/web/answer.h"
#include "supervisor/web/route.h"
#include "supervisor/web/seat.h"
#include "supervisor/web/visitor.h"
#include <stdio.h>
#include <string.h>

/* How often something is sent: only then is a browser noticed that has gone without closing. */
#define HEARTBEAT (15 * USEC_PER_SEC)

/* What each stream begins with. */
#define GREETING "event: here\ndata: {}\n\n"
#define REFUSAL  "event: refused\ndata: {}\n\n"

#define NOT_PERMITTED "io.troupe.Supervisor.NotPermitted"

/* ---- the streams to browsers, and what is kept for them ---- */

struct stream {
    struct seat seat;
    struct feed *feed;
    size_t place;  /* in the poller */
    uint64_t next; /* the piece that is sent */
    size_t offset; /* how much of it is sent */
    bool greeted;  /* GREETING is sent */
    bool suspended;
};

static void drop_first(struct feed *feed)
{
    char **piece = &feed->pieces[feed->first++ % FEED_KEPT];

    feed->bytes -= strlen(*piece);
    free(TAKE_PTR(*piece));
}

static void drop_pieces(struct feed *feed)
{
    while (feed->first < feed->next)
        drop_first(feed);
}

static void wake(struct stream *stream)
{
    if (!stream->suspended)
        return;
    stream->suspended = false;
    MHD_resume_connection(stream->seat.connection);
}

/* The library asks for more only when the browser reads: a browser that reads nothing would keep
 * its stream forever. */
static void end_if_behind(struct stream *stream)
{
    if (stream->seat.over || stream->next >= stream->feed->first)
        return;
    stream->seat.over = true;
    visitor_end(stream->seat.connection);
}

/* Keeps a piece of the streams, takes ownership of it (NULL = it is lost), and wakes those that
 * wait. */
static void add_piece(struct feed *feed, char *piece)
{
    if (!piece)
        return;
    if (feed->next - feed->first == FEED_KEPT)
        drop_first(feed);
    feed->pieces[feed->next++ % FEED_KEPT] = piece;
    feed->bytes += strlen(piece);
    while (feed->bytes > FEED_KEPT_BYTES)
        drop_first(feed);
    list_for_each_entry (stream, &feed->streams, struct stream, seat.node) {
        end_if_behind(stream);
        wake(stream);
    }
}

static void prepare_streams(struct feed *feed, struct poller *poller)
{
    list_for_each_entry (stream, &feed->streams, struct stream, seat.node)
        stream->place =
            stream->suspended ? poller_add(poller, stream->seat.fd, POLLRDHUP) : POLLER_MAX;
}

/* The library does not look at a connection that is suspended. */
static void run_streams(struct feed *feed, const struct poller *poller)
{
    list_for_each_entry (stream, &feed->streams, struct stream, seat.node)
        if (poller_events(poller, stream->place) != 0) {
            stream->seat.over = true;
            wake(stream);
        }
}

static void end_streams(struct feed *feed)
{
    list_for_each_entry (stream, &feed->streams, struct stream, seat.node) {
        stream->seat.over = true;
        wake(stream);
    }
}

/* Returns how much was copied; `*ret_all`: the whole text is copied. */
static size_t copy_from(const char *text, size_t *offset, char *buffer, size_t max, bool *ret_all)
{
    size_t left = strlen(text) - *offset, size = left < max ? left : max;

    memcpy(buffer, text + *offset, size);
    *offset += size;
    *ret_all = size == left;
    return size;
}

static size_t send_greeting(struct stream *stream, char *buffer, size_t max)
{
    size_t n = copy_from(GREETING, &stream->offset, buffer, max, &stream->greeted);

    if (stream->greeted)
        stream->offset = 0;
    return n;
}

/* Sends as many pieces as there is room for: with one at a time, a browser would fall behind in a
 * flood. */
static size_t send_pieces(struct stream *stream, char *buffer, size_t max)
{
    const struct feed *feed = stream->feed;
    size_t n = 0;
    bool all = true;

    while (all && stream->next < feed->next && n < max) {
        n += copy_from(feed->pieces[stream->next % FEED_KEPT], &stream->offset, buffer + n, max - n,
                       &all);
        if (all) {
            stream->next++;
            stream->offset = 0;
        }
    }
    return n;
}

static ssize_t read_stream(void *userdata, uint64_t position, char *buffer, size_t max)
{
    struct stream *stream = userdata;
    const struct feed *feed = stream->feed;

    if (stream->seat.over)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!stream->greeted)
        return (ssize_t)send_greeting(stream, buffer, max);
    if (stream->next == feed->next) {
        stream->suspended = true;
        MHD_suspend_connection(stream->seat.connection);
        return 0;
    }
    return (ssize_t)send_pieces(stream, buffer, max);
}

static void make_room(const struct feed *feed)
{
    struct seat *given_up =
        seat_make_room(&feed->streams, feed->jobs ? FEED_JOBS_STREAMS_MAX : FEED_STREAMS_MAX);

    if (given_up)
        wake(list_entry(given_up, struct stream, seat));
}

static void free_stream(void *userdata)
{
    struct stream *stream = userdata;

    list_unlink(&stream->seat.node);
    stream->feed->n_streams--;
    free(stream);
}

static struct stream *stream_new(struct feed *feed, struct MHD_Connection *connection)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (!stream)
        return NULL;
    stream->feed = feed;
    stream->place = POLLER_MAX;
    stream->next = feed->next;
    visitor_begin(connection, VISITOR_STREAM);
    seat_take(&stream->seat, &feed->streams, connection);
    if (feed->n_streams++ == 0)
        feed->heartbeat_at = clock_deadline(HEARTBEAT);
    return stream;
}

static struct MHD_Response *make_response(struct feed *feed, struct MHD_Connection *connection,
                                          bool only_headers)
{
    struct MHD_Response *response;
    struct stream *stream;

    if (only_headers)
        return MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    stream = stream_new(feed, connection);
    if (!stream)
        return NULL;
    response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, stream, free_stream);
    if (!response)
        free_stream(stream);
    return response;
}

/* Returns 0 or -errno. */
static int connect_feed(struct feed *feed)
{
    if (!question_is_pending(&feed->question))
        questions_ask(feed->questions, &feed->question, "io.troupe.Supervisor.Watch",
                      feed->jobs ? json_pack("{s:b}", "jobs", true) : json_object(), clock_now());
    return question_is_pending(&feed->question) ? 0 : feed->question.failure;
}

enum MHD_Result feed_answer(struct feed *feed, struct MHD_Connection *connection, bool only_headers)
{
    struct MHD_Response *response;
    int r = connect_feed(feed);

    if (r < 0)
        return answer_failure(connection, feed->questions->socket, r);
    if (!only_headers)
        make_room(feed);
    response = make_response(feed, connection, only_headers);
    return answer_stream(connection, response);
}

/* ---- the connection to the supervisor ---- */

static int forward(struct question *question, const json_t *reply)
{
    struct feed *feed = list_entry(question, struct feed, question);
    json_t *event;
    size_t i;

    json_array_foreach(json_object_get(reply, "events"), i, event)
    {
        json_auto_t *light = view_event(event);
        _cleanup_free_ char *text = light ? json_dumps(light, JSON_COMPACT) : NULL;
        char *piece;

        /* JSON has no line breaks outside of strings, and none inside. */
        if (text && asprintf(&piece, "event: event\ndata: %s\n\n", text) >= 0)
            add_piece(feed, piece);
    }
    return 0;
}

/* Ends all streams, so that browsers connect again; not if they would be refused again. */
static void on_end(struct question *question)
{
    struct feed *feed = list_entry(question, struct feed, question);

    if (question->failure == 0 && varlink_reply_is(&question->reply, NOT_PERMITTED))
        add_piece(feed, strdup(REFUSAL));
    else
        end_streams(feed);
    varlink_reply_deinit(&question->reply);
}

void feed_init(struct feed *feed, struct questions *questions, bool jobs)
{
    *feed = (struct feed){.questions = questions, .jobs = jobs};
    question_init(&feed->question, on_end);
    feed->question.part = forward;
    feed->question.timeout = USEC_INFINITY;
    list_init(&feed->streams);
}

void feed_deinit(struct feed *feed)
{
    question_deinit(&feed->question);
    drop_pieces(feed);
}

void feed_prepare(struct feed *feed, struct poller *poller)
{
    if (feed->n_streams == 0) {
        question_deinit(&feed->question);
        return;
    }
    poller_until(poller, feed->heartbeat_at);
    prepare_streams(feed, poller);
}

void feed_run(struct feed *feed, const struct poller *poller, usec_t now)
{
    run_streams(feed, poller);
    if (feed->n_streams > 0 && now >= feed->heartbeat_at) {
        feed->heartbeat_at = usec_add(now, HEARTBEAT);
        add_piece(feed, strdup(": still here\n\n"));
    }
}

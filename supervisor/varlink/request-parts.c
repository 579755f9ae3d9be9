/* SPDX-License-Identifier: MIT */
#include "supervisor/varlink/request-parts.h"

#include <stdlib.h>

/* A part: some tens of microseconds. */
#define PART_BYTES     ((size_t)16 << 10)
#define PART_LOOKED_AT 256
/* The parts of one turn; less than what makes a task slow. */
#define TURN_USEC (WORK_QUEUE_SLOW / 2)
/* With "more": the next part is written when the client has less than this unread. */
#define UNREAD_MAX ((size_t)256 << 10)
/* The size at which a page is sent. */
#define PAGE_BYTES ((size_t)1 << 20)

struct reply *request_part_reply(struct request_parts *parts)
{
    return &parts->request->reply;
}

struct reply *request_part_item(struct request_parts *parts)
{
    parts->left--;
    return request_part_reply(parts);
}

bool request_part_full(struct request_parts *parts, size_t n)
{
    parts->n_looked_at += n;
    return parts->n_looked_at >= PART_LOOKED_AT ||
           parts->request->reply.size - parts->begun >= PART_BYTES ||
           parts->request->reply.error != 0;
}

static bool continues(const struct request_parts *parts)
{
    return parts->may_continue && request_wants_more(parts->request);
}

static void begin_reply(struct request_parts *parts)
{
    request_begin(parts->request);
    if (parts->array)
        reply_array(request_part_reply(parts), parts->array);
    parts->empty = request_part_reply(parts)->size;
}

static void end_reply(struct request_parts *parts)
{
    if (parts->array)
        reply_end_array(request_part_reply(parts));
    if (parts->has_pages && !parts->complete)
        reply_uint(request_part_reply(parts), "next", parts->cursor);
    if (parts->finish)
        parts->finish(parts);
    request_end(parts->request); /* ends with a call of drop(), which frees `parts` */
}

/* Ends this reply and begins another. */
static void send_reply(struct request_parts *parts)
{
    if (parts->pause)
        parts->pause(parts);
    reply_end_array(request_part_reply(parts));
    request_end_more(parts->request);
    begin_reply(parts);
    if (parts->resume)
        parts->resume(parts);
}

static void send_items(struct request_parts *parts)
{
    if (request_part_reply(parts)->size > parts->empty)
        send_reply(parts);
}

/* Sends the last items of a complete list, and keeps the call open. */
static void stay(struct request_parts *parts)
{
    send_items(parts);
    parts->request->answer = NULL;
    parts->stay(parts);
}

static bool may_go_on(const struct request_parts *parts)
{
    return connection_unread(parts->request->connection) <= UNREAD_MAX;
}

/* Returns whether that was the last part of the reply. */
static bool take_steps(struct request_parts *parts)
{
    const struct reply *reply = request_part_reply(parts);

    do {
        if (parts->has_pages && (parts->left == 0 || reply->size >= PAGE_BYTES))
            return true;
        parts->complete = !parts->step(parts);
    } while (!parts->complete && !parts->waits && !request_part_full(parts, 1));
    return parts->complete;
}

/* Returns whether to write another part. If not, `parts` may have been freed. */
static bool write_part(struct request_parts *parts)
{
    const struct reply *reply = request_part_reply(parts);

    parts->begun = reply->size;
    parts->n_looked_at = 0;
    /* A reply that is too large is not sent at all. */
    if (take_steps(parts) || reply->error != 0) {
        if (parts->stay && request_wants_more(parts->request) && reply->error == 0)
            stay(parts);
        else
            end_reply(parts);
        return false;
    }
    if (continues(parts) && reply->size >= PART_BYTES)
        send_reply(parts);
    return !parts->waits && may_go_on(parts);
}

/* Writes several parts per turn, so that most replies are a consistent snapshot. */
static void write_parts(struct request_parts *parts)
{
    const usec_t began = clock_now();

    while (write_part(parts)) {
        if (usec_sub(clock_now(), began) < TURN_USEC)
            continue;
        task_queue(&parts->task);
        return;
    }
}

static void on_turn(struct task *task)
{
    write_parts(list_entry(task, struct request_parts, task));
}

static void on_sent(struct request *request)
{
    struct request_parts *parts = request->state;

    if (!parts->waits && may_go_on(parts))
        task_queue(&parts->task);
}

void request_parts_resume(struct request_parts *parts)
{
    parts->waits = false;
    task_queue(&parts->task);
}

static void answer_now(struct request *request, void *what)
{
    request_parts_flush(what);
}

void request_parts_wake(struct request_parts *parts)
{
    parts->request->answer = answer_now; /* if the supervisor ends before */
    parts->request->what = parts;
    if (may_go_on(parts)) /* otherwise on_sent() follows */
        task_run(&parts->task);
}

void request_parts_flush(struct request_parts *parts)
{
    const struct reply *reply = request_part_reply(parts);

    while (parts->step(parts))
        if (reply->size >= PART_BYTES)
            send_reply(parts);
    send_items(parts);
}

void request_parts_end(struct request_parts *parts)
{
    end_reply(parts);
}

static void free_state(struct request_parts *parts)
{
    if (parts->free)
        parts->free(parts);
    else
        free(parts);
}

static void drop(struct request *request)
{
    struct request_parts *parts = request->state;

    task_cancel(&parts->task);
    free_state(parts);
}

void request_in_parts(struct request *request, struct request_parts *parts)
{
    parts->request = request;
    task_init(&parts->task, request->connection->work, on_turn);
    request->state = parts;
    request->drop = drop;
    request->sent = on_sent;
    begin_reply(parts);
    write_parts(parts);
}

void request_in_pages(struct request *request, struct request_parts *parts, const char *array)
{
    const bool stays = parts->stay && request_wants_more(request);

    if (!request_range(request, "limit", 1, REQUEST_PAGE_MAX)) {
        free_state(parts);
        return;
    }
    parts->array = array;
    parts->may_continue = stays;
    parts->has_pages = !stays;
    parts->cursor = (uint64_t)request_int(request, "cursor", (int64_t)parts->cursor);
    parts->left = (size_t)request_int(request, "limit", REQUEST_PAGE_MAX);
    request_in_parts(request, parts);
}

struct table_list {
    struct request_parts parts;
    const struct handle_table *table;
    void (*write)(struct request_parts *parts, const void *object);
};

static bool step_table(struct request_parts *parts)
{
    const struct table_list *list = list_entry(parts, struct table_list, parts);
    const void *object;

    if (parts->cursor >= list->table->n_entries)
        return false;
    object = handle_table_at(list->table, (uint32_t)parts->cursor++);
    if (object)
        list->write(parts, object);
    return true;
}

void request_list_table(struct request *request, const char *array,
                        const struct handle_table *table,
                        void (*write)(struct request_parts *parts, const void *object))
{
    struct table_list *list = request_allocate(request, sizeof(*list));

    if (!list)
        return;
    list->parts.step = step_table;
    list->table = table;
    list->write = write;
    request_in_pages(request, &list->parts, array);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/web/visitor.h"

#include "shared/base/cleanup.h"
#include <sys/socket.h>

struct visitor {
    struct visitors *visitors;
    struct list node;
    int fd;
    usec_t deadline; /* USEC_INFINITY = in `others` */
};

static const usec_t LIMITS[] = {
    [VISITOR_HEADERS] = 10 * USEC_PER_SEC, [VISITOR_ANSWER] = 30 * USEC_PER_SEC,
    [VISITOR_IDLE] = 30 * USEC_PER_SEC,    [VISITOR_STREAM] = USEC_INFINITY,
    [VISITOR_CLOSING] = USEC_INFINITY,
};

void visitors_init(struct visitors *visitors)
{
    *visitors = (struct visitors){.n_waiting = 0};
    list_init(&visitors->busy);
    list_init(&visitors->idle);
    list_init(&visitors->others);
}

static void visitor_leave(struct visitor *visitor)
{
    list_unlink(&visitor->node);
    if (visitor->deadline != USEC_INFINITY)
        visitor->visitors->n_waiting--;
}

static struct list *list_for(struct visitors *visitors, enum visitor_step step)
{
    if (LIMITS[step] == USEC_INFINITY)
        return &visitors->others;
    return step == VISITOR_IDLE ? &visitors->idle : &visitors->busy;
}

static void visitor_enter(struct visitor *visitor, enum visitor_step step)
{
    struct visitors *visitors = visitor->visitors;

    visitor->deadline = clock_deadline(LIMITS[step]);
    list_push_back(list_for(visitors, step), &visitor->node);
    visitors->n_waiting += LIMITS[step] != USEC_INFINITY;
}

/* The library then reads the end of the connection, and closes it. */
static void visitor_close(struct visitor *visitor)
{
    (void)shutdown(visitor->fd, SHUT_RDWR);
    visitor_leave(visitor);
    visitor_enter(visitor, VISITOR_CLOSING);
}

static void make_room(struct visitors *visitors)
{
    struct list *list = list_empty(&visitors->idle) ? &visitors->busy : &visitors->idle;

    visitor_close(list_first_entry(list, struct visitor, node));
}

static void *visitor_new(struct visitors *visitors, struct MHD_Connection *connection)
{
    struct visitor *visitor = calloc(1, sizeof(*visitor));
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (!visitor)
        return NULL;
    visitor->fd = info ? info->connect_fd : -1;
    if (visitors->n_waiting >= VISITORS_MAX)
        make_room(visitors);
    visitor->visitors = visitors;
    visitor_enter(visitor, VISITOR_HEADERS);
    return visitor;
}

void visitors_notify(void *userdata, struct MHD_Connection *connection, void **context,
                     enum MHD_ConnectionNotificationCode code)
{
    struct visitor *visitor = *context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = visitor_new(userdata, connection);
    } else if (visitor) {
        visitor_leave(visitor);
        free(visitor);
        *context = NULL;
    }
}

/* NULL = there was no memory for it. */
static struct visitor *visitor_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

void visitor_end(struct MHD_Connection *connection)
{
    struct visitor *visitor = visitor_of(connection);

    if (visitor)
        visitor_close(visitor);
}

void visitor_begin(struct MHD_Connection *connection, enum visitor_step step)
{
    struct visitor *visitor = visitor_of(connection);

    if (!visitor)
        return;
    visitor_leave(visitor);
    visitor_enter(visitor, step);
}

static void prepare(const struct list *list, struct poller *poller)
{
    list_for_each_entry (visitor, list, struct visitor, node)
        poller_until(poller, visitor->deadline);
}

void visitors_prepare(const struct visitors *visitors, struct poller *poller)
{
    prepare(&visitors->busy, poller);
    prepare(&visitors->idle, poller);
}

static void close_late(struct list *list, usec_t now)
{
    list_for_each_entry_safe (visitor, list, struct visitor, node)
        if (now >= visitor->deadline)
            visitor_close(visitor);
}

void visitors_run(struct visitors *visitors, usec_t now)
{
    close_late(&visitors->busy, now);
    close_late(&visitors->idle, now);
}

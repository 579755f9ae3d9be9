/* SPDX-License-Identifier: MIT */
#include "supervisor/web/visitor.h"

#include "shared/base/cleanup.h"
#include <sys/socket.h>

struct visitor {
    struct list node;
    int fd;
    usec_t deadline;
};

void visitors_init(struct visitors *visitors)
{
    list_init(&visitors->all);
}

static void *visitor_new(struct visitors *visitors, struct MHD_Connection *connection)
{
    struct visitor *visitor = calloc(1, sizeof(*visitor));
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    if (!visitor)
        return NULL;
    visitor->fd = info ? info->connect_fd : -1;
    visitor->deadline = clock_deadline(VISITOR_HEADERS);
    list_push_back(&visitors->all, &visitor->node);
    return visitor;
}

void visitors_notify(void *userdata, struct MHD_Connection *connection, void **context,
                     enum MHD_ConnectionNotificationCode code)
{
    struct visitor *visitor = *context;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *context = visitor_new(userdata, connection);
    } else if (visitor) {
        list_unlink(&visitor->node);
        free(visitor);
        *context = NULL;
    }
}

void visitor_give(struct MHD_Connection *connection, usec_t deadline)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct visitor *visitor = info ? info->socket_context : NULL;

    if (visitor)
        visitor->deadline = deadline;
}

void visitors_prepare(const struct visitors *visitors, struct poller *poller)
{
    list_for_each (node, &visitors->all)
        poller_until(poller, list_entry(node, struct visitor, node)->deadline);
}

/* The library then reads the end of the connection, and closes it. */
void visitors_run(struct visitors *visitors, usec_t now)
{
    list_for_each (node, &visitors->all) {
        struct visitor *visitor = list_entry(node, struct visitor, node);

        if (now < visitor->deadline)
            continue;
        (void)shutdown(visitor->fd, SHUT_RDWR);
        visitor->deadline = USEC_INFINITY;
    }
}

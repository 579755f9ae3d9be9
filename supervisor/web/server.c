/* SPDX-License-Identifier: MIT */
#include "supervisor/web/server.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/web/exchange.h"
#include <stdarg.h>
#include <stdio.h>

/* The memory of a connection: the headers of a request and of its answer, and a part of the body.
 */
#define MEMORY_MAX ((size_t)32 << 10)

/* Errors of browsers are not logged. */
__attribute__((format(printf, 2, 0))) static void on_log(void *userdata, const char *format,
                                                         va_list arguments)
{
    char text[512];

    (void)userdata;
    if (!log_enabled(LOG_LEVEL_DEBUG))
        return;
    vsnprintf(text, sizeof(text), format, arguments);
    log_debug("libmicrohttpd: %s", text);
}

static struct MHD_Daemon *start(struct server *server, struct site *site, int fd)
{
    const struct MHD_OptionItem options[] = {
        {MHD_OPTION_EXTERNAL_LOGGER, (intptr_t)on_log, NULL},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)exchange_completed, NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)visitors_notify, &server->visitors},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL},
        {MHD_OPTION_END, 0, NULL},
    };

    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL,
                            NULL, exchange_handle, site, MHD_OPTION_ARRAY, options,
                            MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                            (unsigned)SERVER_CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                            (unsigned)SERVER_CONNECTIONS_EACH, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            MEMORY_MAX, MHD_OPTION_END);
}

int server_init(struct server *server, struct site *site, const int *fds, int n_fds)
{
    *server = (struct server){.n = 0};
    visitors_init(&server->visitors);
    for (int i = 0; i < n_fds; i++) {
        struct MHD_Daemon *daemon = start(server, site, fds[i]);

        if (daemon) {
            server->daemons[server->n++] = daemon;
            continue;
        }
        log_error("cannot serve HTTP: libmicrohttpd does not start (memory, descriptors?)");
        while (i < n_fds)
            close_fd(fds[i++]);
        return -EIO;
    }
    return 0;
}

void server_deinit(struct server *server)
{
    while (server->n > 0)
        MHD_stop_daemon(server->daemons[--server->n]);
}

void server_prepare(struct server *server, struct poller *poller)
{
    usec_t now = clock_now();

    visitors_prepare(&server->visitors, poller);
    for (size_t i = 0; i < server->n; i++) {
        const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(server->daemons[i], MHD_DAEMON_INFO_EPOLL_FD);
        MHD_UNSIGNED_LONG_LONG msec;

        if (info)
            poller_add(poller, info->epoll_fd, POLLIN);
        if (MHD_get_timeout(server->daemons[i], &msec) == MHD_YES)
            poller_until(poller, usec_add(now, msec * USEC_PER_MSEC));
    }
}

void server_run(struct server *server, usec_t now)
{
    for (size_t i = 0; i < server->n; i++)
        MHD_run(server->daemons[i]);
    /* Only now is it known which connections were in time. */
    visitors_run(&server->visitors, now);
}

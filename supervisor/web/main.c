/* SPDX-License-Identifier: MIT */

/*
 * The main program of troupe-web: options, sockets, the loop. Serves HTTP with libmicrohttpd, in
 * one thread: requests that wait for the supervisor are suspended, and a page needs little
 * computation, so threads would only add locks.
 */

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/base/standard.h"
#include "supervisor/caller/end-signals.h"
#include "supervisor/web/exchange.h"
#include "supervisor/web/options.h"
#include "supervisor/web/visitor.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#define STATUS_USAGE 2

/* ---- the server ---- */

/* Bounds of each listening socket. */
#define SERVER_CONNECTIONS_MAX  128
#define SERVER_CONNECTIONS_EACH 96 /* from one address */

struct server {
    struct MHD_Daemon *daemons[OPTIONS_LISTEN_MAX]; /* one for each socket */
    size_t n;
    struct visitors visitors;
};

/* The memory of a connection: the headers of a request and of its answer, and a part of the body.
 */
#define MEMORY_MAX ((size_t)32 << 10)

/* Errors of browsers are not logged. */
__attribute__((format(printf, 2, 0))) static void on_log(void *userdata, const char *format,
                                                         va_list arguments)
{
    char text[512];

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

/* Takes over the sockets, even after an error. Prints errors. Returns 0 or -EIO. */
static int server_init(struct server *server, struct site *site, const int *fds, int n_fds)
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

/* No connection may be suspended. */
static void server_deinit(struct server *server)
{
    while (server->n > 0)
        MHD_stop_daemon(server->daemons[--server->n]);
}

static void server_prepare(struct server *server, struct poller *poller)
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

static void server_run(struct server *server, usec_t now)
{
    for (size_t i = 0; i < server->n; i++)
        MHD_run(server->daemons[i]);
    /* Only now is it known which connections were in time. */
    visitors_run(&server->visitors, now);
}

/* ---- the program ---- */

static int read_token(const struct options *options, struct token *ret)
{
    int r = options->token_file ? token_read(ret, options->token_file) : 0;

    if (r == -EPERM)
        log_error("%s: others may read it or write it; it needs mode 0600 or 0640",
                  options->token_file);
    else if (r == -EINVAL)
        log_error("%s: must be a file whose first line is a token of %d to %d printable characters",
                  options->token_file, TOKEN_SIZE_MIN, TOKEN_SIZE_MAX);
    else if (r < 0)
        log_error("%s: %s", options->token_file, strerror(-r));
    return r;
}

static void wait_for(struct poller *poller)
{
    struct timespec left = usec_to_timespec(clock_left(poller->deadline));

    (void)ppoll(poller->items, poller->n, poller->deadline == USEC_INFINITY ? NULL : &left, NULL);
}

static void loop(struct server *server, struct site *site, int signals)
{
    struct poller poller;
    size_t place;

    do {
        usec_t now;

        poller_reset(&poller);
        place = poller_add(&poller, signals, POLLIN);
        feed_prepare(&site->feed, &poller);
        feed_prepare(&site->job_feed, &poller);
        item_streams_prepare(&site->items, &poller);
        questions_prepare(&site->questions, &poller);
        server_prepare(server, &poller);
        wait_for(&poller);
        now = clock_now();
        questions_run(&site->questions, now);
        feed_run(&site->feed, &poller, now);
        feed_run(&site->job_feed, &poller, now);
        item_streams_run(&site->items, &poller, now);
        server_run(server, now);
    } while (poller_events(&poller, place) == 0);
}

/* Resumes suspended connections, as the library requires before it stops. */
static void stop(struct server *server, struct site *site)
{
    (void)sd_notify(0, "STOPPING=1");
    questions_stop(&site->questions);
    server_run(server, clock_now());
    server_deinit(server);
    feed_deinit(&site->feed);
    feed_deinit(&site->job_feed);
}

static int serve(const struct options *options, struct site *site)
{
    struct server server;
    int fds[OPTIONS_LISTEN_MAX];
    _cleanup_close_ int signals = end_signals_open();
    int n = signals < 0 ? signals : listen_open(options, fds);

    if (n < 0 || server_init(&server, site, fds, n) < 0)
        return EXIT_FAILURE;
    questions_init(&site->questions, options->socket);
    feed_init(&site->feed, &site->questions, false);
    feed_init(&site->job_feed, &site->questions, true);
    item_streams_init(&site->items, &site->questions);
    (void)sd_notify(0, "READY=1");
    loop(&server, site, signals);
    stop(&server, site);
    return EXIT_SUCCESS;
}

int main(int argc, char *argv[])
{
    struct site site = {.guard = {.n_hosts = 0}};
    struct options options;
    int r;

    (void)standard_open();
    standard_survive_file_limit();
    log_init("troupe-web", LOG_LEVEL_INFO);
    r = options_parse(&options, argc, argv);
    if (r != 0)
        return r == OPTIONS_E_DONE ? EXIT_SUCCESS : STATUS_USAGE;
    site.guard.hosts = options.hosts;
    site.guard.n_hosts = options.n_hosts;
    site.guard.allow_changes = options.allow_changes;
    site.guard.require_token = options.require_token;
    if (read_token(&options, &site.guard.token) < 0)
        return EXIT_FAILURE;
    return serve(&options, &site);
}

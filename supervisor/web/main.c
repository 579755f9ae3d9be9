/* SPDX-License-Identifier: MIT */

/* The main program of troupe-web: options, sockets, the loop. */

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/base/standard.h"
#include "supervisor/web/options.h"
#include "supervisor/web/server.h"
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#define STATUS_USAGE 2

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

/* Returns a descriptor that becomes readable when the program must end, or -errno. */
static int catch_signals(void)
{
    sigset_t signals;
    int fd;

    (void)signal(SIGPIPE, SIG_IGN);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
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
        questions_prepare(&site->questions, &poller);
        feed_prepare(&site->feed, &poller);
        server_prepare(server, &poller);
        wait_for(&poller);
        now = clock_now();
        questions_run(&site->questions, now);
        feed_run(&site->feed, &poller, now);
        server_run(server, now);
    } while (poller_events(&poller, place) == 0);
}

/* Resumes suspended connections, as the library requires before it stops. */
static void stop(struct server *server, struct site *site)
{
    (void)sd_notify(0, "STOPPING=1");
    feed_stop(&site->feed);
    questions_stop(&site->questions);
    server_run(server, clock_now());
    server_deinit(server);
    questions_deinit(&site->questions);
    feed_deinit(&site->feed);
}

static int serve(const struct options *options, struct site *site)
{
    struct server server;
    int fds[OPTIONS_LISTEN_MAX];
    _cleanup_close_ int signals = catch_signals();
    int n = signals < 0 ? signals : listen_open(options, fds);

    if (n < 0 || server_init(&server, site, fds, n) < 0)
        return EXIT_FAILURE;
    questions_init(&site->questions, options->socket);
    feed_init(&site->feed, options->socket);
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

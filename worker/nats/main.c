/* SPDX-License-Identifier: MIT */

/* troupe-nats: takes jobs from NATS JetStream, see troupe-nats(8). */

#include "shared/base/log.h"
#include "shared/base/standard.h"
#include "worker/nats/bridge.h"
#include "worker/nats/options.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define DATA_MAX ((rlim_t)512 << 20)

/* Blocks the signals that end the program, also in later threads. Returns a descriptor or -errno.
 */
static int open_signals(void)
{
    sigset_t set;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int wait_until(struct bridge *bridge, int signals, usec_t next)
{
    struct pollfd fds[] = {
        {.fd = signals, .events = POLLIN},
        {.fd = troupe_client_fd(bridge->client), .events = POLLIN},
        {.fd = inquiry_fd(&bridge->inquiry), .events = POLLIN},
        {.fd = report_fd(&bridge->report), .events = POLLIN},
        {.fd = -1}, /* of the availability */
        {.fd = -1},
        {.fd = -1}, /* of the engine */
        {.fd = -1},
    };
    const size_t n = sizeof(fds) / sizeof(fds[0]);
    const struct timespec left = usec_to_timespec(clock_left(next));
    struct signalfd_siginfo ignored;

    availability_fds(&bridge->availability, fds + n - ENGINE_FDS - AVAILABILITY_FDS);
    engine_poll(&bridge->engine, fds + n - ENGINE_FDS);
    if (ppoll(fds, n, next == USEC_INFINITY ? NULL : &left, NULL) < 0)
        return errno == EINTR ? 0 : -errno;
    engine_receive(&bridge->engine, fds + n - ENGINE_FDS);
    if (fds[0].revents != 0 && read(signals, &ignored, sizeof(ignored)) > 0)
        bridge_stop(bridge);
    return 0;
}

static int run(struct bridge *bridge, int signals)
{
    char status[128];
    int r = 0;

    (void)snprintf(status, sizeof(status), "Connects to NATS; group %s", bridge->config->group);
    service_manager_status(&bridge->manager, status);
    service_manager_tell(&bridge->manager, SERVICE_READY, 0);
    while (r == 0) {
        const usec_t next = bridge_process(bridge);

        if (bridge->over)
            return bridge->status;
        r = wait_until(bridge, signals, next);
    }
    log_error("cannot wait: %s", strerror(-r));
    return r;
}

/* A server can make libnats allocate a message or a line of any size. With a limit, this ends the
 * connection instead of exhausting the machine's memory. Sanitizers need more memory. */
static void limit_memory(void)
{
#ifndef __SANITIZE_ADDRESS__
    struct rlimit limit;

    if (getrlimit(RLIMIT_DATA, &limit) < 0 || limit.rlim_cur <= DATA_MAX)
        return;
    limit.rlim_cur = DATA_MAX;
    (void)setrlimit(RLIMIT_DATA, &limit);
#endif
}

static int serve(const struct config *config)
{
    struct bridge bridge;
    int signals = open_signals(), r = signals;

    limit_memory();
    if (r < 0) {
        log_error("signals: %s", strerror(-r));
        return r;
    }
    r = bridge_init(&bridge, config);
    if (r == 0)
        r = run(&bridge, signals);
    if (bridge.engine.connected)
        engine_flush(&bridge.engine);
    bridge_deinit(&bridge);
    (void)close(signals);
    return r;
}

static bool needs_file(const struct options *options)
{
    return options->verb == OPTIONS_SERVE || options->verb == OPTIONS_SETUP;
}

/* Users who only send jobs or look at machines may be unable to read the default file. For them,
 * the environment suffices. */
static int load(struct config *config, const struct options *options)
{
    const char *path = options->config ? options->config : getenv("TROUPE_NATS_CONFIG");

    if (!path && !needs_file(options) && access(CONFIG_FILE, R_OK) < 0 && errno == EACCES) {
        if (!getenv("NATS_URL")) {
            log_error(CONFIG_FILE ": %s; set $NATS_URL to the servers, and $NATS_CREDS to a file "
                                  "of credentials if they want one",
                      strerror(EACCES));
            return -EACCES;
        }
        path = "";
    }
    return config_load(config, path, options->group);
}

/* Returns an exit status. */
static int run_verb(const struct options *options, const struct config *config)
{
    switch (options->verb) {
    case OPTIONS_SERVE:
        return serve(config) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    case OPTIONS_SETUP:
        return setup(config);
    case OPTIONS_CREATE:
        return create_job(config, &options->create, &options->output);
    case OPTIONS_DO:
        return create_and_await_job(config, &options->create, &options->output);
    case OPTIONS_WAIT:
        return await_job(config, options->id, options->timeout, &options->output);
    case OPTIONS_CLUSTER:
        return cluster_show(config, &options->output);
    case OPTIONS_FORGET:
        return cluster_forget(config, options->machine);
    }
    return EXIT_FAILURE;
}

int main(int argc, char *argv[])
{
    struct options options;
    struct config config = CONFIG_NULL;
    int r;

    (void)standard_open();
    standard_survive_file_limit();
    log_init("troupe-nats", LOG_LEVEL_INFO);
    r = options_parse(&options, argc, argv);
    if (r != 0)
        return r == OPTIONS_E_DONE ? EXIT_SUCCESS : OPTIONS_STATUS;
    r = load(&config, &options);
    if (r == 0)
        r = run_verb(&options, &config);
    else
        r = r == -EACCES && !needs_file(&options) ? CLIENT_NOT_PERMITTED : EXIT_FAILURE;
    config_deinit(&config);
    return r;
}

/* SPDX-License-Identifier: MIT */

/* troupe-nats: takes jobs from NATS JetStream, see troupe-nats(8). */

#include "shared/base/log.h"
#include "shared/base/standard.h"
#include "worker/nats/bridge.h"
#include "worker/nats/client.h"
#include <errno.h>
#include <getopt.h>
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
        {.fd = -1}, /* of the engine */
        {.fd = -1},
    };
    const size_t n = sizeof(fds) / sizeof(fds[0]);
    const struct timespec left = usec_to_timespec(clock_left(next));
    struct signalfd_siginfo ignored;

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
    int r = 0;

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
    bridge_deinit(&bridge);
    (void)close(signals);
    return r;
}

/* ---- the command line ---- */

static const char help[] =
    "troupe-nats [--config=FILE] serve GROUP\n"
    "troupe-nats [--config=FILE] setup GROUP\n"
    "troupe-nats [--config=FILE] cluster [--json]\n"
    "troupe-nats [--config=FILE] forget MACHINE\n"
    "\n"
    "Takes jobs for a group from NATS JetStream, and publishes their results.\n"
    "\n"
    "  serve                   run until SIGTERM; usually as a service of trouped\n"
    "  setup                   make the streams, and the consumer of the group, if need be\n"
    "  cluster                 show all machines\n"
    "  forget                  remove a machine that is dead or stopped from the list\n"
    "\n"
    "  --config=FILE           the configuration ($TROUPE_NATS_CONFIG, or\n"
    "                          /etc/troupe/nats.conf if it exists); \"\" is none\n"
    "  --json                  print JSON\n"
    "  -h, --help              show this\n"
    "  -V, --version           show the version\n"
    "\n"
    "Servers and credentials are in the configuration or the environment (NATS_URL,\n"
    "NATS_CREDS, …), never on the command line. See troupe-nats(8).\n";

#define STATUS_USAGE 2

enum verb {
    SERVE,
    SETUP,
    CLUSTER,
    FORGET,
    _N_VERBS,
};

static const struct {
    const char *name;
    int n_operands;
    bool for_group; /* its operand is one */
} verbs[] = {
    [SERVE] = {"serve", 1, true},
    [SETUP] = {"setup", 1, true},
    [CLUSTER] = {"cluster", 0, false},
    [FORGET] = {"forget", 1, false},
};

/* Returns an exit status. */
static int run_verb(enum verb verb, const struct config *config, const char *operand, bool json)
{
    switch (verb) {
    case SERVE:
        return serve(config) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    case SETUP:
        return setup(config);
    case CLUSTER:
        return cluster_show(config, json);
    default:
        return cluster_forget(config, operand);
    }
}

static int start(int n, char *words[], const char *path, bool json)
{
    struct config config = CONFIG_NULL;
    enum verb verb = 0;
    int r;

    while (verb < _N_VERBS && (n == 0 || strcmp(verbs[verb].name, words[0]) != 0))
        verb++;
    if (verb == _N_VERBS || n != 1 + verbs[verb].n_operands) {
        fputs(help, stderr);
        return STATUS_USAGE;
    }
    r = config_load(&config, path, verbs[verb].for_group ? words[1] : NULL);
    r = r < 0 ? EXIT_FAILURE : run_verb(verb, &config, words[1], json);
    config_deinit(&config);
    return r;
}

int main(int argc, char *argv[])
{
    static const struct option known[] = {
        {"config", required_argument, NULL, 'c'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    const char *path = getenv("TROUPE_NATS_CONFIG");
    bool json = false;
    int c;

    (void)standard_open();
    standard_survive_file_limit();
    log_init("troupe-nats", LOG_LEVEL_INFO);
    while ((c = getopt_long(argc, argv, "hV", known, NULL)) >= 0) {
        switch (c) {
        case 'c':
            path = optarg;
            break;
        case 'j':
            json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_SUCCESS;
        case 'V':
            puts("troupe-nats " TROUPE_VERSION);
            return EXIT_SUCCESS;
        default:
            return STATUS_USAGE;
        }
    }
    return start(argc - optind, argv + optind, path, json);
}

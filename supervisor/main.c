/* SPDX-License-Identifier: MIT */

/* The supervisor: arguments and start-up. trouped, the keeper, executes it. */

#include "shared/base/log.h"
#include "shared/base/standard.h"
#include "supervisor/config/names/names.h"
#include "supervisor/confinement.h"
#include "supervisor/keeper/keeper.h"
#include "supervisor/keeper/message.h"
#include "supervisor/loop/taker.h"
#include "supervisor/supervisor.h"
#include "supervisor/upgrade/kinds.h"
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EXIT_USAGE 2

/* How long killing the workers' processes after the keeper's death may take. */
#define END_SEC 5

/* Only `h` is also a short option. */
static const struct option OPTIONS[] = {
    {"config", required_argument, NULL, 'c'},
    {"socket", required_argument, NULL, 's'},
    {"log-level", required_argument, NULL, 'l'},
    {"loop", required_argument, NULL, 'o'},
    {"wake", required_argument, NULL, 'w'},
    {"unconfined", no_argument, NULL, 'u'},
    {"check", no_argument, NULL, 'k'},
    {"layout", required_argument, NULL, 'y'}, /* of the program that runs: an upgrade */
    {"version", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char HELP[] =
    "Usage: trouped [OPTION]...\n"
    "Supervises the worker groups of a configuration directory.\n"
    "\n"
    "  --config DIR         troupe.conf and *.group are there (default /etc/troupe)\n"
    "  --socket PATH        control socket (default /run/troupe/troupe.sock); its\n"
    "                       directory must exist\n"
    "  --log-level LEVEL    error, warning, notice, info or debug (default: LogLevel=\n"
    "                       of troupe.conf, else info)\n"
    "  --loop io_uring|epoll\n"
    "                       how to wait (default: io_uring where it is available)\n"
    "  --wake futex|eventfd how workers are woken (default: futex where io_uring can,\n"
    "                       Linux 6.7)\n"
    "  --unconfined         without the filter of its own system calls, for debugging\n"
    "  --check              only checks whether it could start: the configuration, the\n"
    "                       format of the store, and whether it fits the running main\n"
    "                       process\n"
    "  -h, --help           this text\n"
    "  --version            the version\n"
    "\n"
    "Runs in the foreground and logs to standard error, or to the journal when that is\n"
    "where standard error goes. SIGTERM stops it, SIGHUP reloads the configuration.\n"
    "See trouped(8), troupe.group(5), troupectl(1).\n";

static int usage_error(const char *text, const char *value)
{
    fprintf(stderr, "trouped: %s%s%s; see trouped --help\n", text, value ? ": " : "",
            value ? value : "");
    return EXIT_USAGE;
}

/* Returns -1 to continue, else the exit status. */
static int parse(struct supervisor_options *options, int argc, char **argv)
{
    int code, r = 0;

    while (r == 0 && (code = getopt_long(argc, argv, "h", OPTIONS, NULL)) != -1) {
        switch (code) {
        case 'c':
            options->config_directory = optarg;
            break;
        case 's':
            options->socket_path = optarg;
            break;
        case 'l':
            if (log_level_from_string(optarg, &options->log_level) < 0)
                r = usage_error("--log-level takes error, warning, notice, info or debug, not",
                                optarg);
            options->log_level_given = true;
            break;
        case 'o':
            if (loop_kind_from_string(optarg, &options->loop) < 0)
                r = usage_error("--loop takes io_uring or epoll, not", optarg);
            break;
        case 'w':
            options->force_eventfd = strcmp(optarg, "eventfd") == 0;
            if (!options->force_eventfd && strcmp(optarg, "futex") != 0)
                r = usage_error("--wake takes futex or eventfd, not", optarg);
            break;
        case 'u':
            options->unconfined = true;
            break;
        case 'k':
            options->check = true;
            break;
        case 'y':
            options->layout = strtoull(optarg, NULL, 16);
            break;
        case 'v':
            puts("trouped " TROUPE_VERSION);
            return EXIT_SUCCESS;
        case 'h':
            fputs(HELP, stdout);
            return EXIT_SUCCESS;
        default:
            return EXIT_USAGE;
        }
    }
    if (r == 0 && optind < argc)
        r = usage_error("takes no arguments", argv[optind]);
    return r == 0 ? -1 : r;
}

static int misfit(const char *what)
{
    fprintf(stderr,
            "trouped-supervisor " TROUPE_VERSION " does not fit %s: stop trouped and start it\n",
            what);
    return EXIT_FAILURE;
}

/* Returns -1 to continue, else the exit status. */
static int take_ends(struct supervisor_options *options)
{
    const char *text = getenv(KEEPER_VARIABLE);
    int version, length = 0;

    if (!text && options->check)
        return -1;
    if (!text)
        return usage_error("start it by its main program, trouped", NULL);
    if (sscanf(text, "%d %d %d %n", &options->channel, &options->notify_fd, &version, &length) <
            3 ||
        version != MESSAGE_VERSION)
        return misfit("the main process that runs");
    if (options->check && options->layout != upgrade_layout())
        return misfit("what the supervisor that runs would hand over");
    /* The kernel has placed the text, and unsetenv() leaves it there. */
    options->program = text + length;
    (void)unsetenv(KEEPER_VARIABLE);
    options->keeper = getppid();
    if (options->check)
        return -1;
    /* For ps(1): the keeper executes it by descriptor, which Linux before 6.14 takes for the name.
     */
    (void)prctl(PR_SET_NAME, "trouped-supervisor");
    (void)fcntl(options->channel, F_SETFD, FD_CLOEXEC);
    if (options->notify_fd >= 0)
        (void)fcntl(options->notify_fd, F_SETFD, FD_CLOEXEC);
    return -1;
}

static pid_t keeper;

/* The loop notices that the keeper has closed the channel. If it hangs, the alarm ends the process.
 */
static void on_keeper_death(int signal_number)
{
    if (getppid() == keeper)
        return;
    (void)signal(signal_number, SIG_DFL);
    (void)alarm(END_SEC);
}

static void confine(const struct supervisor_options *options)
{
    const int r = options->unconfined ? 0 : confinement_apply();

    if (r < 0)
        log_warning("the supervisor runs without a filter of its own system calls: %s",
                    strerror(-r));
}

int main(int argc, char **argv)
{
    struct supervisor_options options = {
        .config_directory = "/etc/troupe",
        .socket_path = "/run/troupe/troupe.sock",
        .log_level = LOG_LEVEL_INFO,
    };
    struct supervisor *supervisor;
    int r;

    (void)standard_open();
    standard_survive_file_limit();
    /* If the keeper has started this program, the arguments are those of its user. */
    if (argc == 2 && strcmp(argv[1], NAMES_ARGUMENT) == 0 && !getenv(KEEPER_VARIABLE))
        return names_serve();
    if (argc == 2 && strcmp(argv[1], TAKER_ARGUMENT) == 0 && !getenv(KEEPER_VARIABLE))
        return taker_run();
    r = parse(&options, argc, argv);
    if (r < 0)
        r = take_ends(&options);
    if (r >= 0)
        return r;
    log_init("trouped", options.log_level);
    if (options.check)
        return supervisor_check(&options) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    if (!confinement_permits_start())
        return EXIT_FAILURE;
    keeper = options.keeper;
    (void)signal(KEEPER_DEATH_SIGNAL, on_keeper_death);
    confine(&options);
    /* A worker of the same user could otherwise trace us, or write our memory. */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (supervisor_new(&supervisor, &options) < 0)
        return EXIT_FAILURE;
    r = supervisor_run(supervisor);
    if (r == SUPERVISOR_E_UPGRADE)
        _exit(KEEPER_EXIT_UPGRADE); /* nothing is freed: no leak */
    supervisor_free(supervisor);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

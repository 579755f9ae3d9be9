/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/cluster.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/terminal.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PROGRAM "troupe-nats"

#define ARGUMENTS_MAX 20
#define SPAN_SIZE     32

/* A command line; texts are borrowed, and the last one is NULL. */
struct command {
    const char *arguments[ARGUMENTS_MAX];
    size_t n;
    char delay[SPAN_SIZE], timeout[SPAN_SIZE], priority[SPAN_SIZE];
};

bool cluster_is_wanted(const struct invocation *invocation)
{
    return invocation->options.cluster || invocation->options.nats;
}

/* Of options for which a message has no header, the first that is given, or NULL. */
static const char *unsupported_option(const struct options *options)
{
    const struct troupe_job_options *job = &options->job;

    return job->max_retries >= 0       ? "retries"
           : job->backoff_min_usec > 0 ? "backoff"
           : job->at_usec > 0          ? "at"
           : job->wait_usec > 0        ? "wait"
           : job->deadline_usec > 0    ? "deadline"
           : options->reconnect_given  ? "reconnect"
                                       : NULL;
}

static int check_options(const struct options *options)
{
    const char *unsupported = unsupported_option(options);

    if (!unsupported)
        return EXIT_OK;
    complain("--%s: not for jobs of other machines, which take --id, --key, --priority, --delay "
             "and --timeout",
             unsupported);
    return EXIT_USAGE;
}

/* The URL is passed on in the environment. A secret is not repeated, either. */
static int set_url(const char *url)
{
    if (!url)
        return EXIT_OK;
    if (strchr(url, '@')) {
        complain("--nats: a user, password or token in a URL can be seen by everybody on a command "
                 "line; put that URL into $NATS_URL, or into nats.conf as URL=, and give --cluster "
                 "instead");
        return EXIT_USAGE;
    }
    if (*url == '\0') {
        complain("--nats: allowed: nats://HOST:PORT or tls://HOST:PORT, several with commas");
        return EXIT_USAGE;
    }
    return setenv("NATS_URL", url, true) == 0 ? EXIT_OK : call_no_memory();
}

/* It is installed beside this program. */
static int find_program(char path[static PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof(PROGRAM) - 1);
    char *slash;

    path[n > 0 ? n : 0] = '\0';
    slash = strrchr(path, '/');
    if (slash)
        strcpy(slash + 1, PROGRAM);
    if (slash && access(path, X_OK) == 0)
        return EXIT_OK;
    complain("%s is not installed, without which only this machine can be reached; it comes with "
             "the package " PROGRAM,
             slash ? path : PROGRAM);
    return EXIT_FAILED;
}

static void add(struct command *command, const char *text)
{
    command->arguments[command->n++] = text;
}

static void add_option(struct command *command, const char *name, const char *value)
{
    if (!value)
        return;
    add(command, name);
    add(command, value);
}

/* Rounds up, so that it does not become 0. NULL = not given. */
static const char *span(usec_t time, char text[static SPAN_SIZE])
{
    if (time == 0)
        return NULL;
    if (time == USEC_INFINITY)
        return "infinity"; /* refused with what is allowed */
    (void)snprintf(text, SPAN_SIZE, "%" PRIu64 "ms", (time + USEC_PER_MSEC - 1) / USEC_PER_MSEC);
    return text;
}

/* `sends`: the verb sends a job. A second operand, "-", was for this program. */
static void make_command(struct command *command, const struct invocation *invocation,
                         const char *verb, bool sends)
{
    const struct options *options = &invocation->options;
    const struct troupe_job_options *job = &options->job;
    const usec_t wait = options->timeout < USEC_INFINITY ? options->timeout : 0;

    (void)snprintf(command->priority, sizeof(command->priority), "%" PRId64, options->priority);
    add(command, PROGRAM);
    add(command, verb);
    if (options->json)
        add(command, "--json");
    if (options->quiet)
        add(command, "--quiet");
    add_option(command, "--id", job->id);
    add_option(command, "--key", job->key);
    add_option(command, "--priority", options->priority >= 0 ? command->priority : NULL);
    add_option(command, "--delay", span(job->delay_usec, command->delay));
    add_option(command, "--timeout", span(sends ? job->timeout_usec : wait, command->timeout));
    add(command, "--");
    add(command, invocation_operand(invocation, 0));
}

/* Makes the data what standard input has. Returns 0 or -errno. */
static int set_input(const char *data, size_t size)
{
    _cleanup_close_ int fd = memfd_create("payload", MFD_CLOEXEC);

    if (fd < 0)
        return -errno;
    while (size > 0) {
        const ssize_t n = write(fd, data, size);

        if (n < 0 && errno != EINTR)
            return -errno;
        data += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return lseek(fd, 0, SEEK_SET) < 0 || dup2(fd, STDIN_FILENO) < 0 ? -errno : 0;
}

int cluster_execute(const struct invocation *invocation, const char *verb, const char *data,
                    size_t size)
{
    struct command command = {0};
    char path[PATH_MAX];
    int error = 0, r = check_options(&invocation->options);

    if (r == EXIT_OK)
        r = set_url(invocation->options.nats);
    if (r == EXIT_OK)
        r = find_program(path);
    if (r != EXIT_OK)
        return r;
    make_command(&command, invocation, verb, data != NULL);
    if (data)
        error = set_input(data, size);
    if (error == 0) {
        (void)execv(path, (char *const *)(uintptr_t)command.arguments);
        error = -errno;
    }
    complain("cannot execute " PROGRAM ": %s", strerror(-error));
    return EXIT_FAILED;
}

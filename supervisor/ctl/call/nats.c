/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/nats.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/interrupt.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define PROGRAM "troupe-nats"

/* The child's exit status if it cannot execute the program. */
#define STATUS_MISSING 127

struct nats_command nats_command_make(const char *verb)
{
    return (struct nats_command){.arguments = {PROGRAM, verb}, .n_arguments = 2};
}

void nats_command_add(struct nats_command *command, const char *text)
{
    /* The last place stays NULL. */
    if (text && command->n_arguments <= NATS_ARGUMENTS_MAX)
        command->arguments[command->n_arguments++] = text;
}

bool nats_is_wanted(const struct invocation *invocation)
{
    return invocation->options.cluster || invocation->options.nats;
}

/* It goes on in the environment. A secret is not repeated, either. */
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

/* Returns a descriptor of a file that contains the input, or -errno. */
static int open_input(const struct nats_command *command)
{
    _cleanup_close_ int fd = memfd_create("payload", MFD_CLOEXEC);
    const char *data = command->input;
    size_t left = command->input_size;

    if (fd < 0)
        return -errno;
    while (left > 0) {
        const ssize_t n = write(fd, data, left);

        if (n < 0 && errno != EINTR)
            return -errno;
        data += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    if (lseek(fd, 0, SEEK_SET) < 0)
        return -errno;
    return TAKE_FD(fd);
}

/* In the child, which ends with this program. */
static _Noreturn void execute(const char *path, const struct nats_command *command, int input,
                              int output)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGTERM, SIG_DFL);
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0)
        (void)execv(path, (char *const *)(uintptr_t)command->arguments);
    _exit(STATUS_MISSING);
}

/* Returns its process id with the other end of its standard output, or -errno. */
static pid_t start(const char *path, const struct nats_command *command, int *ret_output)
{
    _cleanup_close_ int input = open_input(command);
    int pipe_fds[2];
    pid_t pid;

    if (input < 0)
        return input;
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        execute(path, command, input, pipe_fds[1]);
    if (pid < 0)
        pid = -errno;
    (void)close(pipe_fds[1]);
    if (pid < 0)
        (void)close(pipe_fds[0]);
    else
        *ret_output = pipe_fds[0];
    return pid;
}

/* Reads to the end. Returns 0, -EINTR after the first SIGINT, or -errno. */
static int read_output(int fd, FILE *copy)
{
    char piece[65536];

    for (;;) {
        struct pollfd poller = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (interrupt_seen())
            return -EINTR;
        if (poll(&poller, 1, INTERRUPT_GLANCE / USEC_PER_MSEC) <= 0)
            continue;
        n = read(fd, piece, sizeof(piece));
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0 && fwrite(piece, 1, (size_t)n, copy) != (size_t)n)
            return -ENOMEM;
    }
}

/* Returns its exit status; it has said why itself. */
static int wait_for_end(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_FAILED;
    if (WIFEXITED(status) && WEXITSTATUS(status) != STATUS_MISSING)
        return WEXITSTATUS(status);
    if (WIFSIGNALED(status) && (interrupt_seen() || WTERMSIG(status) == SIGINT))
        return EXIT_INTERRUPTED;
    complain(WIFSIGNALED(status) ? PROGRAM " was killed by signal %d"
                                 : PROGRAM " could not be executed (status %d)",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return EXIT_FAILED;
}

static int take_document(const char *text, size_t size, json_t **ret)
{
    *ret = json_loadb(text, size, 0, NULL);
    if (*ret)
        return EXIT_OK;
    complain(PROGRAM " gave an answer that is not JSON; is it of the same version?");
    return EXIT_FAILED;
}

static int run(const char *path, const struct nats_command *command, json_t **ret)
{
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *copy = open_memstream(&text, &size);
    int output = -1, status, r;
    pid_t pid;

    if (!copy)
        return call_no_memory();
    pid = start(path, command, &output);
    r = pid < 0 ? pid : read_output(output, copy);
    if (fclose(copy) != 0)
        r = r < 0 ? r : -ENOMEM;
    if (pid > 0 && r < 0)
        (void)kill(pid, SIGTERM);
    close_fd(output);
    status = pid > 0 ? wait_for_end(pid) : EXIT_FAILED;
    if (r == -EINTR)
        return EXIT_INTERRUPTED;
    if (r < 0)
        complain("cannot run " PROGRAM ": %s", strerror(-r));
    if (r < 0 || status != EXIT_OK)
        return status != EXIT_OK ? status : EXIT_FAILED;
    return take_document(text, size, ret);
}

int nats_run(const struct invocation *invocation, const struct nats_command *command, json_t **ret)
{
    char path[PATH_MAX];
    int r = set_url(invocation->options.nats);

    if (r == EXIT_OK)
        r = find_program(path);
    return r == EXIT_OK ? run(path, command, ret) : r;
}

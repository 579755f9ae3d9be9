/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/program.h"
#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/keeper/message.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "trouped-supervisor"

/* Prefers the program beside this one to the installed one. */
static void find_program(struct program *program)
{
    char *slash;
    ssize_t n = readlink("/proc/self/exe", program->path, sizeof(program->path) - sizeof(PROGRAM));
    program->path[n > 0 ? n : 0] = '\0';
    slash = strrchr(program->path, '/');
    if (slash) {
        strcpy(slash + 1, PROGRAM);
        if (access(program->path, X_OK) == 0)
            return;
    }
    strcpy(program->path, TROUPE_LIBEXECDIR "/" PROGRAM);
}

static int open_program(const struct program *program)
{
    int fd = open(program->path, O_PATH | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    fd = -errno;
    log_error("%s: %s", program->path, strerror(-fd));
    return fd;
}

static int keep_open(int fd)
{
    return fd < 0 ? 0 : fcntl(fd, F_SETFD, 0);
}

static int run(const struct keeper_program *keeper, const struct keeper_ends *ends)
{
    const struct program *program = (const struct program *)keeper;
    char text[PATH_MAX + 64];
    (void)snprintf(text, sizeof(text), "%d %d %d %s", ends->channel, ends->notify_fd,
                   MESSAGE_VERSION, program->path);
    if (keep_open(ends->channel) == 0 && keep_open(ends->notify_fd) == 0 &&
        setenv(KEEPER_VARIABLE, text, 1) == 0) {
        (void)execveat(program->fd, "", program->argv, environ, AT_EMPTY_PATH);
        /* Its interpreter finds a script by the path only. */
        if (errno == ENOENT)
            (void)execv(program->path, program->argv);
    }
    log_error("%s: %s", program->path, strerror(errno));
    return EXIT_FAILURE;
}

static int renew(struct keeper_program *keeper)
{
    struct program *program = (struct program *)keeper;
    const int fd = open_program(program);
    if (fd < 0)
        return fd;
    program->old_fd = program->fd;
    program->fd = fd;
    return 0;
}

static void settle(struct keeper_program *keeper, bool failed)
{
    struct program *program = (struct program *)keeper;
    if (failed)
        SWAP(program->fd, program->old_fd);
    program->old_fd = close_fd(program->old_fd);
}

void program_init(struct program *program, char **argv)
{
    *program = (struct program){
        .keeper = {.run = run, .renew = renew, .settle = settle}, .argv = argv, .old_fd = -1};
    find_program(program);
    program->fd = open_program(program);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/program.h"
#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/keeper/message.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* Linux before 6.3 does not know MFD_EXEC. */
static int make_memory(void)
{
    const int fd = (int)syscall(SYS_memfd_create, PROGRAM, MFD_CLOEXEC | MFD_EXEC);
    return fd < 0 ? (int)syscall(SYS_memfd_create, PROGRAM, MFD_CLOEXEC) : fd;
}

/* A script must be readable: its interpreter opens it as the same user. */
static bool is_script(int fd)
{
    char begin[2];
    return pread(fd, begin, sizeof(begin), 0) == (ssize_t)sizeof(begin) && begin[0] == '#' &&
           begin[1] == '!';
}

static bool copy(int from, int to)
{
    struct stat status;
    ssize_t n = 1;
    off_t at = 0;
    if (fstat(from, &status) < 0)
        return false;
    while (at < status.st_size && n > 0)
        n = sendfile(to, from, &at, (size_t)(status.st_size - at));
    return at == status.st_size && fchmod(to, S_IXUSR | S_IXGRP | S_IXOTH) == 0;
}

/* Opens the file again, without write access: the kernel executes no file that is open for writing.
 */
static int reopen(int fd)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_PATH | O_CLOEXEC);
}

/*
 * Workers of the same user may read and write the memory of a process, unless it executes a file
 * that its user must not read: see would_dump() in Linux. PR_SET_DUMPABLE comes too late, as a
 * worker may wait for the start of the next supervisor. Returns a descriptor of a copy without read
 * permission, or -1.
 */
static int hide(const struct program *program)
{
    _cleanup_close_ int from = open(program->path, O_RDONLY | O_CLOEXEC), to = -1;
    if (from < 0 || is_script(from))
        return -1;
    to = make_memory();
    return to >= 0 && copy(from, to) ? reopen(to) : -1;
}

static int open_program(const struct program *program)
{
    /* Root reads every file; its workers run as another user, or as root with all rights. */
    int fd = geteuid() == 0 ? -1 : hide(program);
    if (fd < 0)
        fd = open(program->path, O_PATH | O_CLOEXEC);
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
        /* An interpreter can open a script only by its path; a policy may forbid to execute memory
         * (memfd_noexec). */
        if (errno == ENOENT || errno == EACCES)
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

/* SPDX-License-Identifier: MIT */

/* The supervisor's process between fork and exec. */

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/keeper/keeper.h"
#include "supervisor/keeper/message.h"
#include "supervisor/keeper/supervisor-process.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The service manager names its main process in these variables; the supervisor uses them. */
static void take_over_variable(const char *name, pid_t keeper)
{
    const char *value = getenv(name);
    char text[16];
    if (!value || strtol(value, NULL, 10) != keeper)
        return;
    (void)snprintf(text, sizeof(text), "%d", (int)getpid());
    (void)setenv(name, text, 1);
}

/* SIGTERM, SIGINT and SIGHUP stay blocked until the supervisor can handle them. */
static void unblock_signals(void)
{
    sigset_t asking;
    (void)sigemptyset(&asking);
    (void)sigaddset(&asking, SIGTERM);
    (void)sigaddset(&asking, SIGINT);
    (void)sigaddset(&asking, SIGHUP);
    (void)sigprocmask(SIG_SETMASK, &asking, NULL);
}

/* Signals of a terminal would reach it twice if it had no session of its own. */
_Noreturn void supervisor_child_run(const struct program *program, const struct keeper_ends *ends,
                                    pid_t keeper, const struct rlimit *nofile)
{
    (void)setsid();
    if (prctl(PR_SET_PDEATHSIG, KEEPER_DEATH_SIGNAL, 0, 0, 0) < 0 || getppid() != keeper)
        _exit(EXIT_FAILURE);
    unblock_signals();
    if (nofile->rlim_max > 0)
        (void)setrlimit(RLIMIT_NOFILE, nofile);
    take_over_variable("LISTEN_PID", keeper);
    (void)unsetenv("LISTEN_PIDFDID"); /* also names the keeper */
    take_over_variable("WATCHDOG_PID", keeper);
    exit(program->run(program, ends));
}

/* ---- the program ---- */

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* Linux before 6.3 does not know MFD_EXEC. */
static int make_memory(void)
{
    const int fd = (int)syscall(SYS_memfd_create, PROGRAM_NAME, MFD_CLOEXEC | MFD_EXEC);
    return fd < 0 ? (int)syscall(SYS_memfd_create, PROGRAM_NAME, MFD_CLOEXEC) : fd;
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

/* Opens the file again: the kernel executes no file that is open for writing. */
static int reopen(int fd, int flags)
{
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC);
}

/*
 * Workers of the same user may read and write the memory of a process, unless it executes a file
 * that its user must not read: see would_dump() in Linux. PR_SET_DUMPABLE comes too late, as a
 * worker may wait for the start of the next supervisor. Returns a descriptor of a copy without read
 * permission, or `fd` if there can be none. Root reads every file; its workers run as another user,
 * or as root with all rights.
 */
static int hide(int fd)
{
    _cleanup_close_ int from = geteuid() == 0 ? -1 : reopen(fd, O_RDONLY), to = -1;
    if (from < 0 || is_script(from))
        return fd;
    to = make_memory();
    const int hidden = to >= 0 && copy(from, to) ? reopen(to, O_PATH) : -1;
    return hidden < 0 ? fd : hidden;
}

static int keep_open(int fd)
{
    return fd < 0 ? 0 : fcntl(fd, F_SETFD, 0);
}

int program_run(const struct program *program, const struct keeper_ends *ends)
{
    const int fd = program->next_fd >= 0 ? program->next_fd : program->fd;
    char text[PATH_MAX + 64];
    (void)snprintf(text, sizeof(text), "%d %d %d %s", ends->channel, ends->notify_fd,
                   MESSAGE_VERSION, program->path);
    if (keep_open(ends->channel) == 0 && keep_open(ends->notify_fd) == 0 &&
        setenv(KEEPER_VARIABLE, text, 1) == 0) {
        (void)execveat(hide(fd), "", program->argv, environ, AT_EMPTY_PATH);
        /* An interpreter can open a script only by its path; a policy may forbid to execute memory
         * (memfd_noexec). */
        if (errno == ENOENT || errno == EACCES)
            (void)execv(program->path, program->argv);
    }
    log_error("%s: %s", program->path, strerror(errno));
    return EXIT_FAILURE;
}

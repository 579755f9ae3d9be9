/* SPDX-License-Identifier: MIT */
#include "supervisor/process/procfs.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Flag in /proc/PID/stat, as defined by the kernel. */
#define PF_EXITING 0x4u

/* Reads a file of the process in one call, as the kernel requires; NUL-terminated. Returns its
 * length or -errno. */
static ssize_t read_file(pid_t pid, const char *name, char *buffer, size_t size)
{
    char path[64] = "/proc/self/";
    _cleanup_close_ int fd = -1;
    ssize_t n;

    if (pid > 0)
        (void)snprintf(path, sizeof(path), "/proc/%d/", (int)pid);
    (void)strncat(path, name, sizeof(path) - strlen(path) - 1);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    n = read(fd, buffer, size - 1);
    if (n < 0)
        return -errno;
    buffer[n] = '\0';
    return n;
}

int procfs_stat(pid_t pid, struct procfs_stat *ret)
{
    char text[1024], state;
    int parent, group, session;
    unsigned long long started;
    const char *at;
    unsigned flags;
    ssize_t n = read_file(pid, "stat", text, sizeof(text));

    if (n < 0)
        return (int)n;
    /* The name may contain any character, including brackets and blanks. */
    at = strrchr(text, ')');
    if (!at || sscanf(at,
                      ") %c %d %d %d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
                      "%llu",
                      &state, &parent, &group, &session, &flags, &started) != 6)
        return -EBADMSG;
    *ret = (struct procfs_stat){
        .parent = parent,
        .group = group,
        .session = session,
        .started = started,
        .exiting = state == 'Z' || state == 'X' || (flags & PF_EXITING) != 0,
    };
    return 0;
}

/* Returns the number behind "\nNAME:\t", or `missing`. */
static unsigned long long status_number(const char *text, const char *name, int base,
                                        unsigned long long missing)
{
    const char *at = strstr(text, name);

    return at ? strtoull(at + strlen(name), NULL, base) : missing;
}

bool procfs_is_traced(pid_t pid)
{
    char text[4096];
    const ssize_t n = read_file(pid, "status", text, sizeof(text));

    return n < 0 ? n != -ESRCH : status_number(text, "\nTracerPid:\t", 10, 1) != 0;
}

uid_t procfs_user(pid_t pid)
{
    char text[4096];
    const char *line =
        read_file(pid, "status", text, sizeof(text)) > 0 ? strstr(text, "\nUid:") : NULL;
    unsigned user;

    return line && sscanf(line, " Uid: %*u %u", &user) == 1 ? user : (uid_t)-1;
}

/* Returns what is last in the line: what the process itself sees; 0 = unknown. */
static pid_t inner_number(const char *text)
{
    const char *line = strstr(text, "\nNStgid:"), *end = line ? strchr(line + 1, '\n') : NULL;

    while (end && end > line && end[-1] != '\t')
        end--;
    return end ? (pid_t)strtol(end, NULL, 10) : 0;
}

int procfs_signals(pid_t thread, int signal, struct procfs_signals *ret)
{
    static const char *const sets[] = {"\nSigBlk:\t", "\nSigIgn:\t", "\nSigCgt:\t"};
    const unsigned long long bit = 1ULL << (signal - 1);
    char text[4096];
    ssize_t n = read_file(thread, "status", text, sizeof(text));

    if (n < 0)
        return (int)n;
    *ret = (struct procfs_signals){
        .process = (pid_t)status_number(text, "\nTgid:\t", 10, 0),
        .inner = inner_number(text),
    };
    /* Signals without a handler do not end process 1 of a PID namespace. */
    ret->ends = status_number(text, "\nThreads:\t", 10, 0) == 1 &&
                status_number(text, "\nTracerPid:\t", 10, 1) == 0 && ret->inner != 1;
    for (size_t i = 0; i < ELEMENTS(sets); i++)
        if (status_number(text, sets[i], 16, bit) & bit)
            ret->ends = false;
    return ret->process > 0 ? 0 : -EBADMSG;
}

int procfs_cgroup(pid_t pid, char path[PROCFS_CGROUP_SIZE])
{
    char text[2 * PROCFS_CGROUP_SIZE], *end;
    const char *at = text;
    ssize_t n = read_file(pid, "cgroup", text, sizeof(text));

    if (n < 0)
        return (int)n;
    while (strncmp(at, "0::", 3) != 0) {
        at = strchr(at, '\n');
        if (!at)
            return -ENOENT;
        at++;
    }
    at += 3;
    end = strchr(at, '\n');
    if (!end || end - at >= PROCFS_CGROUP_SIZE)
        return -ENAMETOOLONG;
    *end = '\0';
    (void)snprintf(path, PROCFS_CGROUP_SIZE, "%s", at);
    return 0;
}

bool procfs_is_within(const char *own, const char *name, const char *path)
{
    const char *slash = strrchr(own, '/');
    size_t above = slash ? (size_t)(slash - own) : 0, length = strlen(name);

    if (strncmp(path, own, above) != 0 || path[above] != '/' ||
        strncmp(path + above + 1, name, length) != 0)
        return false;
    path += above + 1 + length;
    return *path == '\0' || *path == '/';
}

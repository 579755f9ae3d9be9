/* SPDX-License-Identifier: MIT */
#include "supervisor/process/survivors.h"

#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "supervisor/process/procfs.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Bounds the search if killed processes have started more and more new ones. */
#define KILL_LIMIT (2 * USEC_PER_SEC)
#define PAUSE_MS   1
/* The kernel allows larger environments, but a worker's is at most MESSAGE_SIZE_MAX at its start.
 */
#define ENVIRONMENT_MAX ((size_t)256 << 10)

/* In seconds; more than KILL_LIMIT. */
#define GIVE_UP_AFTER 4

struct search {
    const char *variable; /* "" = only sessions */
    const pid_t *sessions;
    size_t n_sessions;
    bool found;
};

void survivors_variable(pid_t keeper, char ret[SURVIVORS_VARIABLE_MAX])
{
    struct procfs_stat stat;

    ret[0] = '\0';
    if (keeper > 1 && procfs_stat(keeper, &stat) == 0)
        (void)snprintf(ret, SURVIVORS_VARIABLE_MAX, "TROUPE_MAIN=%d-%llu", (int)keeper,
                       stat.started);
}

static int compare_pids(const void *a, const void *b)
{
    const pid_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Searches the whole environment, which the kernel may return in parts. */
static bool has_variable(pid_t pid, const char *variable)
{
    static char text[ENVIRONMENT_MAX + 1];
    const size_t length = strlen(variable) + 1;
    char path[32];
    size_t size = 0;
    ssize_t n;

    (void)snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (size < ENVIRONMENT_MAX && (n = read(fd, text + size, ENVIRONMENT_MAX - size)) > 0)
        size += (size_t)n;
    text[size] = '\0';
    for (size_t at = 0; at < size; at += strlen(text + at) + 1)
        if (size - at >= length && memcmp(text + at, variable, length) == 0)
            return true;
    return false;
}

static bool is_survivor(const struct search *search, pid_t pid)
{
    struct procfs_stat stat;

    if (procfs_stat(pid, &stat) < 0 || stat.exiting)
        return false;
    if (search->n_sessions > 0 && bsearch(&stat.session, search->sessions, search->n_sessions,
                                          sizeof(stat.session), compare_pids))
        return true;
    return search->variable[0] != '\0' && has_variable(pid, search->variable);
}

/* The pidfd is opened before the check, so the signal reaches the process that was checked. */
static void kill_survivor(struct search *search, pid_t pid)
{
    _cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (pidfd < 0 || !is_survivor(search, pid))
        return;
    if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) == 0)
        search->found = true;
}

static void kill_once(struct search *search)
{
    DIR *directory = opendir("/proc");

    search->found = false;
    if (!directory)
        return;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 1 && pid != getpid())
            kill_survivor(search, pid);
    }
    (void)closedir(directory);
}

static void kill_until_none(struct search *search)
{
    const usec_t end = usec_add(clock_now(), KILL_LIMIT / 2);

    do {
        kill_once(search);
        if (search->found)
            (void)poll(NULL, 0, PAUSE_MS);
    } while (search->found && clock_left(end) > 0);
}

/* The read of an environment waits for the lock of that process's memory, which its page faults
 * may hold forever. Only a fatal signal ends that wait. */
static void limit_wait(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGALRM);
    (void)signal(SIGALRM, SIG_DFL);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    (void)alarm(GIVE_UP_AFTER);
}

void survivors_kill(const char *variable, pid_t *sessions, size_t n_sessions)
{
    struct search search = {.variable = "", .sessions = sessions, .n_sessions = n_sessions};

    if (n_sessions > 0)
        qsort(sessions, n_sessions, sizeof(*sessions), compare_pids);
    kill_until_none(&search);
    if (variable[0] == '\0')
        return;
    limit_wait();
    search.variable = variable;
    kill_until_none(&search);
    (void)alarm(0);
}

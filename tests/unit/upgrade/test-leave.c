/* SPDX-License-Identifier: MIT */
#include "supervisor/upgrade/leave.h"

#include "tests/unit/suite.h"
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

#define STATUS 7

/* Both come to this process when their parents have ended. */
static void become_reaper(void)
{
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
}

static pid_t start_leaver(void)
{
    const pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        leave_at_once(STATUS);
    return pid;
}

TEST(it_ends_with_the_status_and_its_memory_follows)
{
    int status;
    pid_t pid, heir;

    pid = start_leaver();
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == STATUS);
    heir = waitpid(-1, &status, __WALL);
    ck_assert_int_gt(heir, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_lt(waitpid(-1, &status, __WALL), 0);
}

/* ---- another thread, which ends late ---- */

static void *wait_for_ever(void *unused)
{
    for (;;)
        (void)pause();
    return unused;
}

static void leave_with_thread(int fd)
{
    pthread_t thread;
    char go;

    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_ever, NULL), 0);
    ck_assert_int_eq(write(fd, "", 1), 1);
    ck_assert_int_eq(read(fd, &go, 1), 1);
    leave_at_once(STATUS);
}

static pid_t other_thread(pid_t pid)
{
    char path[64];
    DIR *directory;
    struct dirent *entry;
    pid_t tid = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    directory = opendir(path);
    ck_assert_ptr_nonnull(directory);
    while ((entry = readdir(directory)))
        if (atoi(entry->d_name) > 0 && atoi(entry->d_name) != pid)
            tid = atoi(entry->d_name);
    (void)closedir(directory);
    return tid;
}

/* Returns the only child of the thread. */
static pid_t child_of(pid_t pid, pid_t tid)
{
    char path[64];
    FILE *file;
    int child = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)tid);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    (void)!fscanf(file, "%d", &child);
    (void)fclose(file);
    return child;
}

/* Waits for the state that ps(1) shows. The suite's time-out ends it. */
static void wait_for_state(pid_t pid, char state)
{
    char path[64], now;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    do {
        FILE *file = fopen(path, "re");

        ck_assert_msg(file, "process %d is gone", (int)pid);
        ck_assert_int_eq(fscanf(file, "%*d (%*[^)]) %c", &now), 1);
        (void)fclose(file);
        ck_assert(state == 'Z' || now != 'Z');
    } while (now != state);
}

TEST(its_memory_outlives_all_its_threads)
{
    int ends[2], status;
    pid_t pid, tid, heir;
    char ready;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        leave_with_thread(ends[1]);
    ck_assert_int_eq(read(ends[0], &ready, 1), 1);
    tid = other_thread(pid);
    ck_assert_int_eq(ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACEEXIT), 0);
    ck_assert_int_eq(write(ends[0], "", 1), 1);
    ck_assert_int_eq(waitpid(tid, &status, __WALL), tid);
    ck_assert_int_eq(status >> 8, SIGTRAP | PTRACE_EVENT_EXIT << 8);
    wait_for_state(pid, 'Z');
    heir = child_of(pid, tid);
    ck_assert_int_gt(heir, 0);
    wait_for_state(heir, 'S');
    ck_assert_int_eq(ptrace(PTRACE_DETACH, tid, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(waitpid(heir, &status, __WALL), heir);
}

TEST(its_descriptors_are_closed_when_it_has_ended)
{
    struct pollfd end = {.events = POLLIN};
    int ends[2], status;
    pid_t pid;

    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(pipe(ends), 0);
        pid = start_leaver();
        ck_assert_int_eq(close(ends[1]), 0);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        end.fd = ends[0];
        ck_assert_int_eq(poll(&end, 1, 0), 1);
        ck_assert_int_eq(end.revents, POLLHUP);
        ck_assert_int_eq(close(ends[0]), 0);
        ck_assert_int_gt(waitpid(-1, &status, __WALL), 0);
    }
}

const struct suite suite = {.name = "leave", .setup = become_reaper};

/* SPDX-License-Identifier: MIT */
/*
 * A worker that may have a template. Its jobs: "warmed" is the pid of the process that loaded,
 * "pid" the worker's own, "facts" what it has inherited, "atfork" how often fork handlers have run,
 * "kill" kills it, "leave" leaves a process behind, "reach PID" says whether it can open the memory
 * of that process.
 *
 * WARM=FILE names a file whose first word says what loading does: "threads", "socket", "epoll",
 * "child", "die", "hang". When it is to fork, "deaf" stops the template and "mortal" kills it, and
 * "full" has no descriptor left.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static pid_t warmed;
static int n_prepared, n_in_child;

static void *sleep_on(void *unused)
{
    pause();
    return unused;
}

static void on_prepare(void)
{
    n_prepared++;
}

static void on_child(void)
{
    n_in_child++;
}

static void stop_template(void *unused)
{
    (void)raise(SIGSTOP);
}

static void kill_template(void *unused)
{
    (void)raise(SIGKILL);
}

/* Descriptors 3 to 8 are the template's, and one is for looking at them. */
static void fill_up(void)
{
    (void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = 10, .rlim_max = 10});
}

static void load(char mode[16])
{
    const char *path = getenv("WARM");
    FILE *file = path ? fopen(path, "re") : NULL;
    pthread_t thread;

    if (!file || fscanf(file, "%15s", mode) != 1)
        strcpy(mode, "well");
    if (file)
        (void)fclose(file);
    warmed = getpid();
    (void)pthread_atfork(on_prepare, NULL, on_child);
    if (strcmp(mode, "threads") == 0)
        (void)pthread_create(&thread, NULL, sleep_on, NULL);
    else if (strcmp(mode, "socket") == 0)
        (void)socket(AF_UNIX, SOCK_STREAM, 0);
    else if (strcmp(mode, "epoll") == 0)
        (void)epoll_create1(0);
    else if (strcmp(mode, "child") == 0 && fork() == 0)
        (void)pause();
}

/* ---- facts ---- */

static void add_file(FILE *out, const char *path, const char *only)
{
    FILE *file = fopen(path, "re");
    char line[512];

    while (file && fgets(line, sizeof(line), file))
        if (!only || strncmp(line, only, strlen(only)) == 0)
            (void)fputs(line, out);
    if (file)
        (void)fclose(file);
}

/* The kind of each descriptor, without the number of its object. */
static void add_descriptors(FILE *out)
{
    for (int fd = 0; fd < 64; fd++) {
        char path[32], target[64] = "";

        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof(target) - 1) > 0)
            (void)fprintf(out, "%d %.*s\n", fd, (int)strcspn(target, "0123456789"), target);
    }
}

static void add_status(FILE *out)
{
    static const char *const fields[] = {"Uid",   "Gid",     "Groups",   "SigB",  "SigI",
                                         "SigC",  "ShdPnd",  "Cap",      "NoNew", "Seccomp",
                                         "Umask", "Threads", "TracerPid"};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        add_file(out, "/proc/self/status", fields[i]);
}

static char *facts(size_t *size)
{
    char *text = NULL;
    int death = 0;
    unsigned cpu = 0;
    FILE *out = open_memstream(&text, size);

    (void)syscall(SYS_getcpu, &cpu, NULL, NULL);
    (void)prctl(PR_GET_PDEATHSIG, &death);
    add_status(out);
    add_file(out, "/proc/self/limits", NULL);
    add_file(out, "/proc/self/oom_score_adj", NULL);
    add_file(out, "/proc/self/cgroup", NULL);
    add_descriptors(out);
    (void)fprintf(out, "leads session %d group %d\n", getsid(0) == getpid(), getpgrp() == getpid());
    (void)fprintf(out, "death signal %d dumpable %d parent %d nice %d\n", death,
                  prctl(PR_GET_DUMPABLE), (int)getppid(), nice(0));
    (void)fprintf(out, "directory %s\n", get_current_dir_name());
    for (char **variable = environ; *variable; variable++)
        (void)fprintf(out, "has %s\n", *variable);
    (void)fclose(out);
    return text;
}

/* The C library knows the CPU from an area that the kernel must have been told of. */
static bool knows_cpu(void)
{
    const int before = sched_getcpu();
    cpu_set_t all, one;

    (void)sched_getaffinity(0, sizeof(all), &all);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        (void)sched_setaffinity(0, sizeof(one), &one);
        if (sched_getcpu() != (int)cpu)
            return false;
    }
    (void)sched_setaffinity(0, sizeof(all), &all);
    return before >= 0;
}

static pid_t leave(void)
{
    const pid_t pid = fork();

    if (pid == 0)
        for (;;)
            (void)pause();
    return pid;
}

static bool can_reach(const char *pid, size_t size)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%.*s/mem", (int)size, pid);
    fd = open(path, O_RDWR | O_CLOEXEC);
    return fd >= 0 && close(fd) == 0;
}

static int handle(struct troupe_job *job, void *unused)
{
    size_t size;
    const char *payload = troupe_job_payload(job, &size);
    char text[64] = "", *all = NULL;

    if (size == 5 && memcmp(payload, "facts", size) == 0)
        all = facts(&size);
    else if (memcmp(payload, "warmed", 6) == 0)
        (void)snprintf(text, sizeof(text), "%d", (int)warmed);
    else if (memcmp(payload, "pid", 3) == 0)
        (void)snprintf(text, sizeof(text), "%d", (int)getpid());
    else if (memcmp(payload, "cpu", 3) == 0)
        (void)snprintf(text, sizeof(text), "%d", knows_cpu());
    else if (memcmp(payload, "atfork", 6) == 0)
        (void)snprintf(text, sizeof(text), "%d %d", n_prepared, n_in_child);
    else if (memcmp(payload, "kill", 4) == 0)
        (void)raise(SIGKILL);
    else if (memcmp(payload, "leave", 5) == 0)
        (void)snprintf(text, sizeof(text), "%d", (int)leave());
    else if (size > 6 && memcmp(payload, "reach ", 6) == 0)
        (void)snprintf(text, sizeof(text), "%d", can_reach(payload + 6, size - 6));
    return troupe_job_succeed(job, all ? all : text, all ? size : strlen(text));
}

int main(void)
{
    struct troupe_fork_hooks hooks = {.before = NULL};
    const bool is_template = getenv("TROUPE_TEMPLATE");
    struct troupe_worker *worker;
    char mode[16];
    int r;

    load(mode);
    if (is_template && strcmp(mode, "die") == 0)
        return 3;
    if (is_template && strcmp(mode, "hang") == 0)
        (void)pause();
    if (is_template && strcmp(mode, "full") == 0)
        fill_up();
    if (strcmp(mode, "deaf") == 0)
        hooks.before = stop_template;
    else if (strcmp(mode, "mortal") == 0)
        hooks.before = kill_template;
    r = troupe_template_run(&hooks);
    if (r < 0)
        return r != -ESHUTDOWN;
    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, handle, NULL);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}

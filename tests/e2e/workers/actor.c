/* SPDX-License-Identifier: MIT */
/*
 * A worker that runs the commands of its payload, one a line, up to the first empty line:
 *
 *   echo TEXT            ends the job with this result; the next four lines end it as well
 *   retry CODE TEXT | reject CODE TEXT | cancelled
 *   attempt | pid | name | sum | environment NAME | directory
 *   note PATH TEXT       appends a line to the file, and ends the job with it
 *   blob SIZE            a result of that size, byte i = i modulo 251
 *   state TEXT           publishes it
 *   checkpoint TEXT | checkpoint-of SIZE    makes one, or exits with status 98
 *   last                 ends the job with the last checkpoint, before this attempt
 *   emit TEXT            emits it, or why it is refused
 *   ring PATH | wait PATH    writes a line to a FIFO; waits for one
 *   complain TEXT        writes a line to standard error
 *   mutter TEXT          writes to standard error, without ending the line
 *   until-cancelled      ends the job once the cancel flag is set
 *   crash segv|abort|kill | exit STATUS | deaf | allocate
 *   leak BYTES           allocates and keeps that much memory
 *   fell PATH            appends the attempt's number to the file, and kills all of trouped
 *   orphan PATH          forks a process that holds PATH open
 *   before N COMMAND     only in attempts before the N-th
 *
 * With ACTOR_SCOPE=FILE set-up and tear-down append a line to the file. ACTOR_NEVER_READY: hangs at
 * its start. ACTOR_SET_UP_FAILS: set-up fails. ACTOR_NEVER_ENDS: hangs in its tear-down, and
 * ignores SIGTERM.
 */
#include "worker/troupe.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static bool argument_of(const char *line, const char *command, const char **ret)
{
    size_t n = strlen(command);

    if (strncmp(line, command, n) != 0 || (line[n] != '\0' && line[n] != ' '))
        return false;
    *ret = line[n] == ' ' ? line + n + 1 : "";
    return true;
}

static void ring(const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "rung\n", 5) != 5)
        _exit(99);
    close(fd);
}

static void wait_bell(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    while (fd >= 0 && read(fd, &byte, 1) == 1 && byte != '\n')
        ;
    close(fd);
}

static void orphan(const char *path)
{
    if (fork() == 0) {
        signal(SIGTERM, SIG_IGN);
        if (open(path, O_WRONLY) < 0)
            _exit(99);
        for (;;)
            pause();
    }
}

static void allocate(void)
{
    for (;;) {
        void *block = malloc(1 << 20);

        if (!block)
            abort();
        memset(block, 1, 1 << 20);
    }
}

/* The memory stays reachable, so a leak checker does not report it. */
static void leak(size_t size)
{
    static void *kept;
    void **block = malloc(size);

    if (!block)
        abort();
    memset(block, 1, size);
    block[0] = kept;
    kept = block;
}

/* Ends the job with the size and the FNV-1a hash of its payload. */
static int sum(struct troupe_job *job)
{
    size_t size;
    char text[64];
    const unsigned char *data = troupe_job_payload(job, &size);
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * UINT64_C(1099511628211);
    return troupe_job_succeed(
        job, text,
        (size_t)snprintf(text, sizeof(text), "%zu %016llx", size, (unsigned long long)hash));
}

static int blob(struct troupe_job *job, size_t size)
{
    void *data;
    int r = troupe_job_blob(job, size, &data);

    if (r < 0)
        return r;
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)data)[i] = (unsigned char)(i % 251);
    return troupe_job_succeed_blob(job);
}

static int succeed(struct troupe_job *job, const char *text)
{
    return troupe_job_succeed(job, text, strlen(text));
}

static int succeed_number(struct troupe_job *job, long number)
{
    char text[32];

    snprintf(text, sizeof(text), "%ld", number);
    return succeed(job, text);
}

static int until_cancelled(struct troupe_job *job)
{
    while (!troupe_job_is_cancelled(job)) {
        troupe_worker_heartbeat(troupe_job_worker(job));
        poll(NULL, 0, 1);
    }
    return troupe_job_cancelled(job);
}

static void crash(const char *how)
{
    if (strcmp(how, "segv") == 0)
        raise(SIGSEGV);
    if (strcmp(how, "abort") == 0)
        abort();
    raise(SIGKILL);
}

/* Kills the main process and all of its children, before any of them can act on that. */
static void fell(struct troupe_job *job, const char *path)
{
    const int main_process = (int)getppid();
    char children[64];
    FILE *file = fopen(path, "a");
    int pid;

    if (!file || fprintf(file, "%u\n", troupe_job_attempt(job)) < 0 || fclose(file) < 0)
        _exit(99);
    (void)snprintf(children, sizeof(children), "/proc/%d/task/%d/children", main_process,
                   main_process);
    (void)kill(main_process, SIGSTOP);
    file = fopen(children, "r");
    while (file && fscanf(file, "%d", &pid) == 1)
        if (pid != getpid())
            (void)kill(pid, SIGKILL);
    (void)kill(main_process, SIGKILL);
    for (;;)
        pause();
}

static int retry(struct troupe_job *job, const char *argument)
{
    char *rest;
    int code = (int)strtol(argument, &rest, 10);

    return troupe_job_retry(job, code, *rest ? rest + 1 : rest);
}

static int last(struct troupe_job *job)
{
    size_t size;
    const void *data = troupe_job_last_checkpoint(job, &size);

    return troupe_job_succeed(job, data, size);
}

/* "later SECONDS TEXT" */
static int later(struct troupe_job *job, const char *argument)
{
    char *rest;
    uint64_t seconds = strtoull(argument, &rest, 10);

    return troupe_job_retry_after(job, seconds * 1000000, 1, *rest ? rest + 1 : rest);
}

static int reject(struct troupe_job *job, const char *argument)
{
    char *rest;
    int code = (int)strtol(argument, &rest, 10);

    rest += *rest != '\0';
    return troupe_job_reject(job, code, rest, strlen(rest));
}

static int directory(struct troupe_job *job)
{
    char buffer[4096];

    return succeed(job, getcwd(buffer, sizeof(buffer)) ? buffer : "");
}

static void write_event(int fd, const char *what)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)dprintf(fd, "%s %lld %d\n", what, now.tv_sec * 1000000LL + now.tv_nsec / 1000, getpid());
}

/* Works for some milliseconds with a lock on a file that lists when it began and ended. The lock
 * ends with the process. */
static int alone(struct troupe_job *job, const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0)
        _exit(98);
    write_event(fd, flock(fd, LOCK_EX | LOCK_NB) == 0 ? "begin" : "overlap");
    (void)usleep(5000);
    write_event(fd, "end");
    (void)close(fd);
    return succeed(job, "");
}

static int note_line(struct troupe_job *job, const char *argument)
{
    const char *text = strchrnul(argument, ' ');
    char path[256], line[512];

    snprintf(path, sizeof(path), "%.*s", (int)(text - argument), argument);
    int size = snprintf(line, sizeof(line), "%s\n", text + (*text == ' '));
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    /* In one write(2), which other workers cannot split. */
    if (fd < 0 || write(fd, line, (size_t)size) != size)
        _exit(99);
    close(fd);
    return troupe_job_succeed(job, line, (size_t)size - 1);
}

/* Runs a command that ends the job. Returns 1, 0 if it is no such command, or -errno. */
static int run_end(struct troupe_job *job, const char *line)
{
    const char *argument;
    int r;

    if (argument_of(line, "echo", &argument))
        r = succeed(job, argument);
    else if (argument_of(line, "retry", &argument))
        r = retry(job, argument);
    else if (argument_of(line, "last", &argument))
        r = last(job);
    else if (argument_of(line, "later", &argument))
        r = later(job, argument);
    else if (argument_of(line, "reject", &argument))
        r = reject(job, argument);
    else if (argument_of(line, "cancelled", &argument))
        r = troupe_job_cancelled(job);
    else if (argument_of(line, "attempt", &argument))
        r = succeed_number(job, troupe_job_attempt(job));
    else if (argument_of(line, "pid", &argument))
        r = succeed_number(job, getpid());
    else if (argument_of(line, "name", &argument))
        r = succeed(job, troupe_worker_name(troupe_job_worker(job)));
    else if (argument_of(line, "environment", &argument))
        r = succeed(job, getenv(argument) ? getenv(argument) : "");
    else if (argument_of(line, "directory", &argument))
        r = directory(job);
    else if (argument_of(line, "note", &argument))
        r = note_line(job, argument);
    else if (argument_of(line, "alone", &argument))
        r = alone(job, argument);
    else if (argument_of(line, "sum", &argument))
        r = sum(job);
    else if (argument_of(line, "blob", &argument))
        r = blob(job, strtoul(argument, NULL, 10));
    else if (argument_of(line, "until-cancelled", &argument))
        r = until_cancelled(job);
    else
        return 0;
    return r < 0 ? r : 1;
}

static void checkpoint(struct troupe_job *job, const char *text, size_t size)
{
    char *data = calloc(1, size + 1);

    if (!data)
        _exit(98);
    memcpy(data, text, strlen(text));
    if (troupe_job_checkpoint(job, data, size) < 0)
        _exit(98);
    free(data);
}

static void emit(struct troupe_job *job, const char *text)
{
    char refusal[128];
    int r = troupe_job_emit(job, text, strlen(text));

    if (r == 0)
        return;
    snprintf(refusal, sizeof(refusal), "refused: %s", strerror(-r));
    if (troupe_job_emit(job, refusal, strlen(refusal)) < 0)
        _exit(99);
}

static int run(struct troupe_job *job, const char *line)
{
    const char *argument;
    char *rest;

    if (argument_of(line, "before", &argument)) {
        unsigned long limit = strtoul(argument, &rest, 10);

        return troupe_job_attempt(job) < limit ? run(job, rest + 1) : 0;
    }
    if (argument_of(line, "state", &argument))
        troupe_worker_publish_state(troupe_job_worker(job), argument, strlen(argument));
    else if (argument_of(line, "checkpoint", &argument))
        checkpoint(job, argument, strlen(argument));
    else if (argument_of(line, "checkpoint-of", &argument))
        checkpoint(job, "", strtoul(argument, NULL, 10));
    else if (argument_of(line, "emit", &argument))
        emit(job, argument);
    else if (argument_of(line, "ring", &argument))
        ring(argument);
    else if (argument_of(line, "wait", &argument))
        wait_bell(argument);
    else if (argument_of(line, "complain", &argument))
        fprintf(stderr, "%s\n", argument);
    else if (argument_of(line, "mutter", &argument))
        fputs(argument, stderr);
    else if (argument_of(line, "rename", &argument))
        prctl(PR_SET_NAME, argument);
    else if (argument_of(line, "crash", &argument))
        crash(argument);
    else if (argument_of(line, "fell", &argument))
        fell(job, argument);
    else if (argument_of(line, "exit", &argument))
        _exit((int)strtol(argument, NULL, 10));
    else if (argument_of(line, "deaf", &argument))
        signal(SIGTERM, SIG_IGN);
    else if (argument_of(line, "allocate", &argument))
        allocate();
    else if (argument_of(line, "leak", &argument))
        leak(strtoul(argument, NULL, 10));
    else if (argument_of(line, "orphan", &argument))
        orphan(argument);
    else
        return run_end(job, line);
    return 0;
}

static int handle(struct troupe_job *job, void *userdata)
{
    size_t size;
    const char *at = troupe_job_payload(job, &size), *end = at + size;
    char line[8192];

    while (at < end && *at != '\n') {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);

        if (n >= sizeof(line))
            return -EINVAL;
        memcpy(line, at, n);
        line[n] = '\0';
        int r = run(job, line);
        if (r != 0)
            return r < 0 ? r : 0;
        at += n + (stop ? 1 : 0);
    }
    return 0;
}

static void note(struct troupe_worker *worker, const char *what)
{
    const char *path = getenv("ACTOR_SCOPE");
    FILE *file = path ? fopen(path, "a") : NULL;

    if (!file)
        return;
    fprintf(file, "%s %s %llu\n", what, troupe_worker_name(worker),
            (unsigned long long)troupe_worker_generation(worker));
    fclose(file);
}

static int set_up(struct troupe_worker *worker, void *userdata)
{
    note(worker, "up");
    return getenv("ACTOR_SET_UP_FAILS") ? -EIO : 0;
}

static void tear_down(struct troupe_worker *worker, void *userdata)
{
    note(worker, "down");
    while (getenv("ACTOR_NEVER_ENDS"))
        pause();
}

int main(void)
{
    struct troupe_worker *worker;
    int r = troupe_worker_new(&worker);

    if (r < 0)
        return troupe_worker_start_error(r);
    if (getenv("ACTOR_NEVER_ENDS"))
        signal(SIGTERM, SIG_IGN);
    while (getenv("ACTOR_NEVER_READY"))
        pause();
    troupe_worker_on_scope(worker, set_up, tear_down, NULL);
    if (getenv("ACTOR_SCOPE_SIGNALS")) {
        troupe_worker_tear_down_on(worker, SIGTERM);
        troupe_worker_tear_down_on(worker, SIGABRT);
    }
    troupe_worker_on_job(worker, handle, NULL);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}

/* SPDX-License-Identifier: MIT */

/*
 * An example worker: counts, and misbehaves on request. The payload is
 *
 *     N [WORD…]
 *
 * It counts from 1 to N, publishes {"count":i,"to":N} at each step, and looks for the cancel flag.
 * Words:
 *
 *     pause=MSEC     between two steps
 *     crash-at=K     dies of a segmentation fault
 *     error-at=K     fails: retried
 *     hang-at=K      is busy forever and does not check the cancel flag
 *     stuck-at=K     waits forever in a system call
 *     attempts=A     does these four only on the first A attempts
 *     reject         counts, and then rejects the job
 *
 * Its published state stays readable in all these cases.
 */

#include "worker/troupe.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX 256

struct task {
    uint64_t to, pause_msec;
    uint64_t crash_at, error_at, hang_at, stuck_at; /* 0 = never */
    uint64_t attempts;
    bool reject;
};

static int parse_number(const char *text, uint64_t *ret)
{
    char *end;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return errno != 0 || *end != '\0' ? -EINVAL : 0;
}

static int parse_word(struct task *task, const char *word)
{
    const struct {
        const char *name;
        uint64_t *value;
    } known[] = {
        {"pause=", &task->pause_msec},  {"crash-at=", &task->crash_at},
        {"error-at=", &task->error_at}, {"hang-at=", &task->hang_at},
        {"stuck-at=", &task->stuck_at}, {"attempts=", &task->attempts},
    };

    if (strcmp(word, "reject") == 0) {
        task->reject = true;
        return 0;
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t length = strlen(known[i].name);

        if (strncmp(word, known[i].name, length) == 0)
            return parse_number(word + length, known[i].value);
    }
    return -EINVAL;
}

/* Cuts `text` into words. */
static int parse(struct task *task, char *text)
{
    char *rest, *word = strtok_r(text, " \t\n", &rest);
    int r;

    *task = (struct task){.attempts = UINT64_MAX};
    if (!word)
        return -EINVAL;
    r = parse_number(word, &task->to);
    while (r == 0 && (word = strtok_r(NULL, " \t\n", &rest)))
        r = parse_word(task, word);
    return r;
}

static void be_stuck(void)
{
    int ends[2];
    char nothing;

    /* No other process has the writing end, so nothing is ever written. */
    if (pipe(ends) == 0)
        while (read(ends[0], &nothing, 1) != 1)
            ;
}

static void hang(void)
{
    for (volatile uint64_t turns = 0;; turns++)
        ;
}

/* Returns true if this step is an error. */
static bool misbehave(const struct task *task, uint64_t step)
{
    volatile int *volatile nowhere = NULL;

    if (step == task->crash_at)
        *nowhere = 1;
    if (step == task->hang_at)
        hang();
    if (step == task->stuck_at)
        be_stuck();
    return step == task->error_at;
}

static int describe(char *text, size_t size, uint64_t step, uint64_t to)
{
    return snprintf(text, size, "{\"count\":%" PRIu64 ",\"to\":%" PRIu64 "}", step, to);
}

static int count(struct troupe_job *job, const struct task *task)
{
    struct timespec pause = {.tv_sec = (time_t)(task->pause_msec / 1000),
                             .tv_nsec = (long)(task->pause_msec % 1000) * 1000000};
    bool behave = troupe_job_attempt(job) > task->attempts;
    char text[TEXT_MAX];
    int size = describe(text, sizeof(text), 0, task->to);

    for (uint64_t step = 1; step <= task->to; step++) {
        if (troupe_job_is_cancelled(job))
            return troupe_job_cancelled(job);
        size = describe(text, sizeof(text), step, task->to);
        (void)troupe_worker_publish_state(troupe_job_worker(job), text, (size_t)size);
        if (!behave && misbehave(task, step)) {
            snprintf(text, sizeof(text), "error at %" PRIu64 ", as asked", step);
            return troupe_job_retry(job, 1, text);
        }
        if (task->pause_msec > 0)
            (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    if (task->reject)
        return troupe_job_reject(job, 1, "it was told to fail", strlen("it was told to fail"));
    return troupe_job_succeed(job, text, (size_t)size);
}

static int handle(struct troupe_job *job, void *userdata)
{
    static const char problem[] = "not understood: want N [pause=MSEC] [crash-at=K] [error-at=K] "
                                  "[hang-at=K] [stuck-at=K] [attempts=A] [reject]";
    const char *payload;
    struct task task;
    char text[TEXT_MAX];
    size_t size;

    (void)userdata;
    payload = troupe_job_payload(job, &size);
    if (size >= sizeof(text))
        return troupe_job_reject(job, EINVAL, problem, strlen(problem));
    memcpy(text, payload, size);
    text[size] = '\0';
    if (strlen(text) != size || parse(&task, text) < 0)
        return troupe_job_reject(job, EINVAL, problem, strlen(problem));
    return count(job, &task);
}

/* Also called in a signal handler, so without stdio's locks. */
static void say(const char *what, struct troupe_worker *worker)
{
    dprintf(STDERR_FILENO, "count: %s %s, generation %" PRIu64 "\n", what,
            troupe_worker_name(worker), troupe_worker_generation(worker));
}

static int set_up(struct troupe_worker *worker, void *userdata)
{
    (void)userdata;
    say("set up", worker);
    return 0;
}

static void tear_down(struct troupe_worker *worker, void *userdata)
{
    (void)userdata;
    say("tear down", worker);
}

int main(void)
{
    struct troupe_worker *worker;
    int r;

    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, handle, NULL);
    troupe_worker_on_scope(worker, set_up, tear_down, NULL);
    (void)troupe_worker_tear_down_on(worker, SIGTERM);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}

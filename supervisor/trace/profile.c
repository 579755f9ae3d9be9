/* SPDX-License-Identifier: MIT */
#include "supervisor/trace/profile.h"
#include "shared/base/cleanup.h"
#include "supervisor/trace/look.h"
#include "supervisor/trace/unwind.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* How often the mappings and the children are looked up again. */
#define REFRESH_INTERVAL USEC_PER_SEC
/* How long the supervisor may take to say whether a sample counts. */
#define ANSWER_MS 10000
/* How long the last sample may take to be unwound. */
#define LAST_USEC (3 * USEC_PER_SEC)

#define COUNT_DIGITS 10

/* Between this process and the one that unwinds. */
struct shared {
    _Atomic uint32_t n_done;   /* partners: the store in unwind_samples(), the load in is_idle() */
    _Atomic uint32_t left_out; /* stacks for which there was no room */
};

struct profiler {
    struct trace_output *output;
    struct shared *shared;
    struct target targets[SAMPLE_TARGETS_MAX];
    size_t n_targets;
    pid_t unwinder; /* 0 = none */
    int samples_fd; /* a byte for each sample, for the process that unwinds */
    uint32_t n_sent, n_missed, n_samples;
    usec_t stopped, begun;
};

/* ---- the process that unwinds ---- */

static char *find_line(char *text, size_t size, const char *key, size_t key_size)
{
    char *at = text;

    while ((at = memmem(at, size - (size_t)(at - text), key, key_size))) {
        if (at - text > COUNT_DIGITS && at[-COUNT_DIGITS - 1] == '\n')
            return at - COUNT_DIGITS;
        at++;
    }
    return NULL;
}

/* Counts a stack. Each stack has a line, which begins with its count in digits of fixed width. */
static void count_stack(void *userdata, const char *line, size_t size)
{
    struct profiler *profiler = userdata;
    struct trace_output *output = profiler->output;
    char key[UNWIND_LINE_MAX + 2], number[COUNT_DIGITS + 1];
    char *found;

    key[0] = '\t';
    memcpy(key + 1, line, size);
    key[size + 1] = '\n';
    found = find_line(output->text, output->size, key, size + 2);
    if (found) {
        memcpy(number, found, COUNT_DIGITS);
        number[COUNT_DIGITS] = '\0';
        (void)snprintf(number, sizeof(number), "%010lu", strtoul(number, NULL, 10) + 1);
        memcpy(found, number, COUNT_DIGITS);
        return;
    }
    if (TRACE_PROFILE_MAX - output->size < COUNT_DIGITS + size + 2) {
        atomic_fetch_add_explicit(&profiler->shared->left_out, 1, memory_order_relaxed);
        return;
    }
    memcpy(output->text + output->size, "0000000001", COUNT_DIGITS);
    memcpy(output->text + output->size + COUNT_DIGITS, key, size + 2);
    output->size += COUNT_DIGITS + (uint32_t)size + 2;
}

static void unwind_samples(struct profiler *profiler, int fd)
{
    struct folder *folders[SAMPLE_TARGETS_MAX];
    char byte;
    int r;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    for (size_t i = 0; i < profiler->n_targets; i++)
        folders[i] = folder_new(&profiler->targets[i]);
    r = folders_confine();
    while (r == 0 && read(fd, &byte, 1) == 1) {
        for (size_t i = 0; i < profiler->n_targets; i++)
            if (folders[i] && profiler->targets[i].sample->complete)
                folder_add(folders[i], count_stack, profiler);
        atomic_fetch_add_explicit(&profiler->shared->n_done, 1, memory_order_release);
    }
}

/* ---- this process ---- */

static void end_unwinder(struct profiler *profiler)
{
    close_fd(profiler->samples_fd);
    profiler->samples_fd = -1;
    if (profiler->unwinder > 0)
        (void)kill(profiler->unwinder, SIGKILL);
    profiler->unwinder = 0;
}

static int begin_unwinder(struct profiler *profiler)
{
    int ends[2];

    if (pipe(ends) < 0)
        return -errno;
    profiler->n_sent = atomic_load_explicit(&profiler->shared->n_done, memory_order_relaxed);
    profiler->unwinder = fork();
    if (profiler->unwinder == 0) {
        close_fd(ends[1]);
        unwind_samples(profiler, ends[0]);
        _exit(EXIT_SUCCESS);
    }
    close_fd(ends[0]);
    profiler->samples_fd = ends[1];
    return profiler->unwinder < 0 ? -errno : 0;
}

/* Whether the last sample has been unwound, so that its memory is free. */
static bool is_idle(const struct profiler *profiler)
{
    return profiler->unwinder == 0 ||
           atomic_load_explicit(&profiler->shared->n_done, memory_order_acquire) ==
               profiler->n_sent;
}

/* Says that a sample was taken, and asks whether it counts. */
static bool is_counted(void)
{
    struct pollfd answer = {.fd = TRACE_FD_ANSWER, .events = POLLIN};
    bool counts;

    return eventfd_write(TRACE_FD_RELEASE, 1) == 0 && poll(&answer, 1, ANSWER_MS) == 1 &&
           read(TRACE_FD_ANSWER, &counts, sizeof(counts)) == sizeof(counts) && counts;
}

/* Looks for children that have started or ended. If there are any, the process that unwinds must
 * end: it has the files of the previous targets. */
static void refresh_family(struct profiler *profiler, const struct hints *hints)
{
    struct target now[SAMPLE_TARGETS_MAX];
    const int found = targets_open(now, hints->pid, true);
    const size_t n = found < 0 ? 0 : (size_t)found;
    bool same = n == profiler->n_targets;

    for (size_t i = 0; same && i < n; i++)
        same = now[i].pid == profiler->targets[i].pid;
    if (!same)
        end_unwinder(profiler);
    for (size_t i = 0; !same && i < profiler->n_targets; i++)
        target_close(&profiler->targets[i]);
    for (size_t i = 0; same && i < n; i++)
        target_close(&now[i]);
    if (!same) {
        memcpy(profiler->targets, now, sizeof(now));
        profiler->n_targets = n;
    }
}

static usec_t longest_stop(const struct profiler *profiler)
{
    usec_t longest = 0;

    for (size_t i = 0; i < profiler->n_targets; i++)
        if (profiler->targets[i].sample->stopped > longest)
            longest = profiler->targets[i].sample->stopped;
    return longest;
}

/* Returns whether the profile continues. A process that cannot be stopped now may be later. */
static bool take_one(struct profiler *profiler, const struct hints *hints, bool mappings)
{
    const usec_t begin = clock_now();
    usec_t took, said;
    int r;

    for (size_t i = 0; i < profiler->n_targets; i++)
        sample_reset(profiler->targets[i].sample, mappings);
    if (!look_is_valid() || profiler->n_targets == 0)
        return false;
    r = look_take(profiler->targets, profiler->n_targets, hints);
    /* The other process may have been taken over: it cannot say more than the time that it took. */
    took = usec_sub(clock_now(), begin);
    said = longest_stop(profiler);
    profiler->stopped += r == 0 && said < took ? said : took;
    if (r < 0) {
        profiler->n_missed++;
        return true;
    }
    if (!is_counted() || (profiler->unwinder == 0 && begin_unwinder(profiler) < 0) ||
        write(profiler->samples_fd, "", 1) != 1)
        return false;
    profiler->n_sent++;
    profiler->n_samples++;
    return true;
}

static void write_head(const struct profiler *profiler)
{
    char head[TRACE_PROFILE_HEAD + 1];

    (void)snprintf(head, sizeof(head), "P\t%010u\t%010u\t%010u\t%015llu\t%015llu\n",
                   profiler->n_samples, profiler->n_missed,
                   atomic_load_explicit(&profiler->shared->left_out, memory_order_relaxed),
                   (unsigned long long)profiler->stopped,
                   (unsigned long long)usec_sub(clock_now(), profiler->begun));
    memcpy(profiler->output->text, head, TRACE_PROFILE_HEAD);
}

static void pause_until(usec_t at)
{
    const struct timespec time = usec_to_timespec(at);

    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static void take_all(struct profiler *profiler, const struct hints *hints, usec_t end)
{
    usec_t refresh_at = 0, next = clock_now(), stopped;
    bool goes_on = true;

    while (goes_on && clock_now() < end) {
        const usec_t now = clock_now();
        stopped = profiler->stopped;
        if (!is_idle(profiler)) {
            profiler->n_missed++;
        } else {
            if (now >= refresh_at && refresh_at > 0)
                refresh_family(profiler, hints);
            goes_on = take_one(profiler, hints, now >= refresh_at);
            refresh_at = now >= refresh_at ? usec_add(now, REFRESH_INTERVAL) : refresh_at;
            write_head(profiler);
        }
        next = usec_add(next, PROFILE_INTERVAL);
        stopped = usec_add(now, (profiler->stopped - stopped) * PROFILE_SHARE);
        if (stopped > next)
            next = stopped;
        pause_until(next < end ? next : end);
    }
    for (const usec_t last = usec_add(clock_now(), LAST_USEC);
         !is_idle(profiler) && clock_now() < last;)
        pause_until(usec_add(clock_now(), USEC_PER_MSEC));
    write_head(profiler);
}

int profile(const struct hints *hints, usec_t duration, struct trace_output *output)
{
    struct profiler profiler = {.output = output, .samples_fd = -1, .begun = clock_now()};
    int n;

    (void)signal(SIGPIPE, SIG_IGN);
    profiler.shared = mmap(NULL, sizeof(*profiler.shared), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (profiler.shared == MAP_FAILED)
        return -errno;
    n = targets_open(profiler.targets, hints->pid, true);
    if (n < 0)
        return n;
    profiler.n_targets = (size_t)n;
    write_head(&profiler);
    output->size = TRACE_PROFILE_HEAD;
    take_all(&profiler, hints, usec_add(profiler.begun, duration));
    end_unwinder(&profiler);
    return 0;
}

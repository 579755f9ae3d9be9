/* SPDX-License-Identifier: MIT */
/*
 * troupe-trace: where the threads of a process are. The supervisor starts it, with the user and the
 * capabilities of a worker:
 *
 *     troupe-trace PID CRASHED CONTEXT PYTHON VERSION
 *
 * with struct hints as numbers, and three descriptors: a pidfd of the process, an eventfd that it
 * writes once the process may go on or end, and a sealed memfd for what it finds, as in struct
 * trace_output. What it does with the process before that takes milliseconds; what follows may take
 * as long as the supervisor lets it run.
 *
 * Memory and files of the process are hostile. They are read only after the process that reads them
 * has given up its capabilities and nearly all system calls. The process that traces ends before
 * the first file is opened, so a file system that never answers holds up no worker.
 */

#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "shared/protocol/trace.h"
#include "supervisor/trace/unwind.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* For the process that traces: a death that it hides is reported all the same after 900 ms. */
#define SAMPLE_USEC (700 * USEC_PER_MSEC)

static size_t open_targets(struct target *targets, pid_t pid, bool family)
{
    size_t n = 0;

    if (target_open(&targets[0], pid) < 0)
        return 0;
    for (n = 1; family && n < SAMPLE_TARGETS_MAX;) {
        pid_t children[SAMPLE_TARGETS_MAX];
        const size_t n_before = n;
        const size_t found = target_children(&targets[n - 1], children, SAMPLE_TARGETS_MAX - n);
        for (size_t i = 0; i < found; i++)
            n += target_open(&targets[n], children[i]) == 0;
        if (n == n_before)
            break;
    }
    return n;
}

/* Returns whether the number that was looked up is still that of the process behind the pidfd. */
static bool is_same(void)
{
    return syscall(SYS_pidfd_send_signal, TRACE_FD_PROCESS, 0, NULL, 0) == 0;
}

static bool wait_for(pid_t pid)
{
    const usec_t until = usec_add(clock_now(), SAMPLE_USEC);
    const struct timespec pause = {.tv_nsec = 100000};

    while (waitpid(pid, NULL, WNOHANG) != pid) {
        if (clock_now() >= until)
            return false;
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return true;
}

/* Takes the samples in a process of its own, whose end lets the targets go on. */
static int sample(struct target *targets, size_t n, const struct hints *hints)
{
    const pid_t pid = fork();

    if (pid < 0)
        return -errno;
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        _exit(-sample_take(targets, n, hints));
    }
    if (!wait_for(pid))
        (void)kill(pid, SIGKILL);
    return targets[0].sample->complete ? 0 : -ESRCH;
}

static int vdso_file(const struct sample *sample)
{
    const int fd = memfd_create("vdso", MFD_CLOEXEC);

    if (fd >= 0 && write(fd, sample->vdso, sample->vdso_size) < 0)
        return close_fd(fd);
    return fd;
}

static int parse(char *argv[], pid_t *ret_pid, struct hints *ret)
{
    unsigned long long numbers[5];

    for (size_t i = 0; i < ELEMENTS(numbers); i++) {
        char *end;
        if (!argv[i])
            return -EINVAL;
        numbers[i] = strtoull(argv[i], &end, 10);
        if (*end != '\0')
            return -EINVAL;
    }
    *ret_pid = (pid_t)numbers[0];
    *ret = (struct hints){(pid_t)numbers[1], numbers[2], numbers[3], (uint32_t)numbers[4]};
    return 0;
}

static int trace(pid_t pid, const struct hints *hints, struct trace_output *output)
{
    struct target targets[SAMPLE_TARGETS_MAX];
    struct trace_text text = {
        .data = output->text, .size = &output->size, .max = sizeof(output->text)};
    const size_t n = open_targets(targets, pid, hints->crashed == 0);
    int files[SAMPLE_TARGETS_MAX];
    int r = n == 0 ? -errno : is_same() ? sample(targets, n, hints) : -ESRCH;

    (void)eventfd_write(TRACE_FD_RELEASE, 1);
    (void)setpriority(PRIO_PROCESS, 0, 10); /* nobody waits for the rest */
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++)
        files[i] = vdso_file(targets[i].sample);
    unwind_prepare();
    r = confine();
    for (size_t i = 0; r == 0 && i < n; i++)
        if (targets[i].sample->complete)
            unwind(&targets[i], files[i], &text);
    return r;
}

int main(int argc, char *argv[])
{
    struct trace_output *output =
        mmap(NULL, sizeof(*output), PROT_READ | PROT_WRITE, MAP_SHARED, TRACE_FD_OUTPUT, 0);
    struct hints hints;
    pid_t pid;
    int r;

    if (argc != 6 || output == MAP_FAILED || parse(argv + 1, &pid, &hints) < 0) {
        (void)fprintf(stderr, "troupe-trace is started by trouped.\n");
        return EXIT_FAILURE;
    }
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* workers of this user must not trace it */
    output->size = 0;
    r = trace(pid, &hints, output);
    output->error = r;
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

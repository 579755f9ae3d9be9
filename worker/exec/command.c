/* SPDX-License-Identifier: MIT */
#include "worker/exec/command.h"

#include "shared/base/cleanup.h"
#include "worker/exec/leftovers.h"
#include "worker/exec/spawn-command.h"
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* How often the cancel flag is checked: it is in shared memory, which cannot be polled. */
#define TICK (50 * USEC_PER_MSEC)
/* Bounds the reads that empty a pipe after the command's end: other processes may still write to
 * it. */
#define DRAIN_READS 64
#define READ_SIZE   65536
/* Bounds the killing of what a command has left behind. */
#define LEFTOVERS_LIMIT (2 * USEC_PER_SEC)

struct run {
    const struct command_options *options;
    struct spawned spawned;
    struct command_end *end;
    size_t output_capacity;
    size_t input_at;
    sigset_t mask; /* the mask before take_signals() */
    int signal_fd;
    usec_t started_at;
    usec_t kill_at; /* when SIGKILL follows */
};

void command_end_deinit(struct command_end *end)
{
    free(end->output);
    *end = (struct command_end)COMMAND_END_NULL;
}

/* ---- ending it ---- */

static void signal_group(const struct run *run, int number)
{
    /* The leader is reaped last, so the group's id is not reused yet. */
    (void)kill(-run->spawned.pid, number);
}

static void stop(struct run *run, enum command_stop why, usec_t now)
{
    if (run->end->stop != COMMAND_NOT_STOPPED)
        return;
    run->end->stop = why;
    run->kill_at = usec_add(now, run->options->kill_after);
    signal_group(run, SIGTERM);
    /* A stopped process does not handle SIGTERM. */
    signal_group(run, SIGCONT);
}

static void escalate(struct run *run, usec_t now)
{
    if (run->end->stop == COMMAND_NOT_STOPPED || now < run->kill_at)
        return;
    signal_group(run, SIGKILL);
    run->kill_at = USEC_INFINITY;
}

/* Blocks the signals that ask this process to end, and reads them from a descriptor while the
 * command runs. */
static int take_signals(struct run *run)
{
    sigset_t signals;
    int fd;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (sigprocmask(SIG_BLOCK, &signals, &run->mask) < 0) {
        close_fd(fd);
        return -errno;
    }
    run->signal_fd = fd;
    return 0;
}

static void give_signals_back(const struct run *run)
{
    close_fd(run->signal_fd);
    (void)sigprocmask(SIG_SETMASK, &run->mask, NULL);
}

static void read_signal(struct run *run, usec_t now)
{
    struct signalfd_siginfo info;

    if (read(run->signal_fd, &info, sizeof(info)) != sizeof(info))
        return;
    if (run->end->signal == 0) {
        run->end->signal = (int)info.ssi_signo;
        sender_look_up(&run->end->sender, &info);
    }
    stop(run, COMMAND_TERMINATED, now);
}

/* ---- its pipes ---- */

static void feed(struct run *run)
{
    const char *from = (const char *)run->options->input + run->input_at;
    ssize_t n = write(run->spawned.input, from, run->options->input_size - run->input_at);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        run->input_at += (size_t)n;
    /* The command may close its input early. */
    if (n < 0 || run->input_at == run->options->input_size)
        run->spawned.input = close_fd(run->spawned.input);
}

static int keep_output(struct run *run, const char *data, size_t size, usec_t now)
{
    struct command_end *end = run->end;

    if (size > run->options->max_output - end->output_size) {
        stop(run, COMMAND_OVERFLOW, now);
        return 0;
    }
    if (end->output_size + size > run->output_capacity) {
        size_t capacity = run->output_capacity * 2;
        char *larger;

        if (capacity < end->output_size + size)
            capacity = end->output_size + size;
        larger = realloc(end->output, capacity);
        if (!larger)
            return -ENOMEM;
        end->output = larger;
        run->output_capacity = capacity;
    }
    memcpy(end->output + end->output_size, data, size);
    end->output_size += size;
    return 0;
}

static void keep_tail(struct command_end *end, const char *data, size_t size)
{
    size_t keep;

    if (size > sizeof(end->tail)) {
        data += size - sizeof(end->tail);
        size = sizeof(end->tail);
    }
    keep = sizeof(end->tail) - size;
    if (keep > end->tail_size)
        keep = end->tail_size;
    memmove(end->tail, end->tail + end->tail_size - keep, keep);
    memcpy(end->tail + keep, data, size);
    end->tail_size = keep + size;
}

/* Copies standard error to this process's own at once. */
static void pass_error(struct run *run, const char *data, size_t size)
{
    keep_tail(run->end, data, size);
    while (size > 0) {
        ssize_t n = write(STDERR_FILENO, data, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        data += n;
        size -= (size_t)n;
    }
}

/* Reads once from a pipe of the command, and closes it at its end. Returns 1 if there was data,
 * 0, or -errno. */
static int read_pipe(struct run *run, int *fd, usec_t now)
{
    static char buffer[READ_SIZE];
    ssize_t n;
    int r = 0;

    if (*fd < 0)
        return 0;
    n = read(*fd, buffer, sizeof(buffer));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0) {
        *fd = close_fd(*fd);
        return 0;
    }
    if (fd == &run->spawned.error)
        pass_error(run, buffer, (size_t)n);
    else
        r = keep_output(run, buffer, (size_t)n, now);
    return r < 0 ? r : 1;
}

static int drain(struct run *run, int *fd)
{
    int r = 1;

    for (int i = 0; i < DRAIN_READS && r > 0; i++)
        r = read_pipe(run, fd, clock_now());
    return r < 0 ? r : 0;
}

/* ---- its life ---- */

enum {
    POLL_EXIT,
    POLL_SIGNAL,
    POLL_OUTPUT,
    POLL_ERROR,
    POLL_INPUT,
    N_POLL
};

/* Handles the next events. Sets `*ret_ended` when the process has ended. */
static int turn(struct run *run, usec_t timeout, bool *ret_ended)
{
    struct pollfd pollers[N_POLL] = {
        [POLL_EXIT] = {.fd = run->spawned.pidfd, .events = POLLIN},
        [POLL_SIGNAL] = {.fd = run->signal_fd, .events = POLLIN},
        [POLL_OUTPUT] = {.fd = run->spawned.output, .events = POLLIN},
        [POLL_ERROR] = {.fd = run->spawned.error, .events = POLLIN},
        [POLL_INPUT] = {.fd = run->spawned.input, .events = POLLOUT},
    };
    struct timespec limit = usec_to_timespec(timeout);
    usec_t now;
    int r = 0;

    if (ppoll(pollers, N_POLL, &limit, NULL) < 0)
        return errno == EINTR ? 0 : -errno;
    now = clock_now();
    if (pollers[POLL_SIGNAL].revents)
        read_signal(run, now);
    if (pollers[POLL_INPUT].revents)
        feed(run);
    if (pollers[POLL_ERROR].revents)
        r = read_pipe(run, &run->spawned.error, now);
    if (r >= 0 && pollers[POLL_OUTPUT].revents)
        r = read_pipe(run, &run->spawned.output, now);
    *ret_ended = pollers[POLL_EXIT].revents != 0;
    return r < 0 ? r : 0;
}

static int watch(struct run *run)
{
    const struct command_options *options = run->options;
    usec_t tick_at = 0;
    bool ended = false;
    int r = 0;

    while (r == 0 && !ended) {
        usec_t now = clock_now();

        if (now >= tick_at) {
            if (options->tick &&
                options->tick(options->userdata, run->spawned.pid, run->end->output_size))
                stop(run, COMMAND_CANCELLED, now);
            leftovers_reap(run->spawned.pid);
            tick_at = usec_add(now, TICK);
        }
        escalate(run, now);
        r = turn(run, usec_sub(tick_at, now), &ended);
    }
    return r;
}

/* In case it was killed just now. */
static void await_end(const struct run *run)
{
    struct pollfd poller = {.fd = run->spawned.pidfd, .events = POLLIN};

    while (poll(&poller, 1, -1) < 0 && errno == EINTR)
        ;
}

/* Kills the rest of the group, collects the leader's status, and ends what has left the group. */
static int reap(struct run *run)
{
    siginfo_t info = {0};

    signal_group(run, SIGKILL);
    run->end->pid = run->spawned.pid;
    run->end->uptime = usec_sub(clock_now(), run->started_at);
    await_end(run);
    if (!leftovers_untrace(run->spawned.pid, LEFTOVERS_LIMIT)) {
        if (run->end->stop == COMMAND_NOT_STOPPED)
            run->end->stop = COMMAND_TRACED;
        run->end->leftovers = !leftovers_end(LEFTOVERS_LIMIT);
        return 0;
    }
    /* The C library's waitid() does not return the usage. */
    while (syscall(SYS_waitid, P_PID, run->spawned.pid, &info, WEXITED, &run->end->usage) < 0)
        if (errno != EINTR)
            return -errno;
    run->end->signalled = info.si_code != CLD_EXITED;
    run->end->core_dumped = info.si_code == CLD_DUMPED;
    run->end->code = info.si_status;
    run->end->leftovers = !leftovers_end(LEFTOVERS_LIMIT);
    return 0;
}

static int live(struct run *run)
{
    int r, reaped;

    r = watch(run);
    reaped = reap(run);
    if (r == 0)
        r = reaped;
    if (r == 0)
        r = drain(run, &run->spawned.output);
    if (r == 0)
        r = drain(run, &run->spawned.error);
    return r;
}

int command_run(const struct command_options *options, struct command_end *ret)
{
    struct command_end end = COMMAND_END_NULL;
    struct run run = {.options = options, .end = &end, .spawned = SPAWNED_NULL};
    int r = take_signals(&run);

    if (r < 0)
        return r;
    /* Taken before the start: a short command may have ended when spawn_command() returns. */
    run.started_at = clock_now();
    r = spawn_command(&run.spawned, options->path, options->argv, &run.mask,
                      options->input_size > 0);
    if (r == 0) {
        r = live(&run);
        spawned_deinit(&run.spawned);
    }
    give_signals_back(&run);
    if (r < 0) {
        command_end_deinit(&end);
        return r;
    }
    *ret = end;
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "worker/exec/command.h"

#include "shared/base/cleanup.h"
#include "worker/exec/leftovers.h"
#include "worker/exec/spawn-command.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* How often the cancel flag is checked: it is in shared memory, which cannot be polled. */
#define TICK (50 * USEC_PER_MSEC)
/* Bounds the killing of processes that a command has left behind. */
#define LEFTOVERS_LIMIT (2 * USEC_PER_SEC)
/* Bounds the wait for the rest of the output, after all processes that could write it were killed.
 */
#define REST_LIMIT (5 * USEC_PER_SEC)
/* Pauses between attempts to start a command that cannot start now. */
#define PAUSE_MIN (10 * USEC_PER_MSEC)
#define PAUSE_MAX USEC_PER_SEC

struct run {
    const struct command_options *options;
    struct spawned spawned;
    struct command_end *end;
    size_t output_capacity;
    int start_error; /* -errno: why it cannot start now */
    sigset_t mask;   /* the mask before take_signals() */
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
        run->end->sender = info.ssi_code > 0 ? 0 : (pid_t)info.ssi_pid;
        run->end->sender_uid = info.ssi_uid;
    }
    stop(run, COMMAND_TERMINATED, now);
}

/* ---- its output ---- */

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

/* Copies standard error to this process's own immediately. */
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

static int handle_message(struct run *run, const struct reader_message *message, usec_t now)
{
    if (message->tag == READER_OUTPUT)
        return keep_output(run, message->data, message->size, now);
    if (message->tag == READER_ERROR)
        pass_error(run, message->data, message->size);
    else if (run->options->take && message->tag != READER_DONE)
        run->options->take(run->options->userdata, message);
    return 0;
}

/* Handles the next message of the reader, if there is one. */
static int take_output(struct run *run, usec_t now)
{
    struct reader_message message;
    const int r = reader_receive(run->options->reader, &message);

    if (r < 0) {
        stop(run, COMMAND_UNREAD, now);
        (void)reader_end(run->options->reader, LEFTOVERS_LIMIT);
    }
    return r > 0 ? handle_message(run, &message, now) : 0;
}

/* Handles the reader's messages until it answers reader_finish(). Returns whether it has answered.
 */
static bool take_rest(struct run *run)
{
    const usec_t until = usec_add(clock_now(), REST_LIMIT);
    const struct reader *reader = run->options->reader;
    struct reader_message message;
    int r = reader_finish(reader);

    while (r >= 0) {
        struct pollfd poller = {.fd = reader->fd, .events = POLLIN};
        const usec_t now = clock_now();
        const struct timespec limit = usec_to_timespec(usec_sub(until, now));

        r = reader_receive(reader, &message);
        if (r > 0 && message.tag == READER_DONE)
            return true;
        if (r > 0)
            r = handle_message(run, &message, now);
        else if (r == 0 && (now >= until || ppoll(&poller, 1, &limit, NULL) == 0))
            break;
    }
    return false;
}

/* Collects the rest of the output. Gives up a reader that hangs because a process that was not
 * killed holds the lock of its pipes. */
static void finish_output(struct run *run)
{
    if (run->options->reader->pid == 0 || take_rest(run))
        return;
    if (run->end->stop == COMMAND_NOT_STOPPED)
        run->end->stop = COMMAND_UNREAD;
    if (!reader_end(run->options->reader, LEFTOVERS_LIMIT))
        run->end->leftovers = true;
}

/* ---- its life ---- */

enum {
    POLL_EXIT,
    POLL_SIGNAL,
    POLL_OUTPUT,
    N_POLL
};

/* Handles the next events. Sets `*ret_ended` when the process has ended. */
static int turn(struct run *run, usec_t timeout, bool *ret_ended)
{
    struct pollfd pollers[N_POLL] = {
        [POLL_EXIT] = {.fd = run->spawned.pidfd, .events = POLLIN},
        [POLL_SIGNAL] = {.fd = run->signal_fd, .events = POLLIN},
        [POLL_OUTPUT] = {.fd = run->options->reader->fd, .events = POLLIN},
    };
    struct timespec limit = usec_to_timespec(timeout);
    usec_t now;
    int r = 0;

    if (ppoll(pollers, N_POLL, &limit, NULL) < 0)
        return errno == EINTR ? 0 : -errno;
    now = clock_now();
    if (pollers[POLL_SIGNAL].revents)
        read_signal(run, now);
    if (pollers[POLL_OUTPUT].revents)
        r = take_output(run, now);
    *ret_ended = pollers[POLL_EXIT].revents != 0;
    return r;
}

/* Reports progress to the caller, which may stop the command. */
static void tick(struct run *run, usec_t now)
{
    const struct command_options *options = run->options;
    const struct command_progress progress = {
        .pid = run->spawned.pid,
        .start_error = run->start_error,
        .output_size = run->end->output_size,
    };

    if (options->tick && options->tick(options->userdata, &progress))
        stop(run, COMMAND_CANCELLED, now);
}

static int watch(struct run *run)
{
    usec_t tick_at = 0;
    bool ended = false;
    int r = 0;

    while (r == 0 && !ended) {
        usec_t now = clock_now();

        if (now >= tick_at) {
            tick(run, now);
            leftovers_reap(run->spawned.pid);
            tick_at = usec_add(now, TICK);
        }
        escalate(run, now);
        r = turn(run, usec_sub(tick_at, now), &ended);
    }
    return r;
}

/* Waits a moment for the end, in case it was killed just now. */
static void await_end(const struct run *run)
{
    struct pollfd poller = {.fd = run->spawned.pidfd, .events = POLLIN};

    while (poll(&poller, 1, -1) < 0 && errno == EINTR)
        ;
}

/* Kills the rest of the group, collects the leader's status, and ends processes that have left the
 * group. */
static int reap(struct run *run)
{
    const pid_t reader = run->options->reader->pid;
    siginfo_t info = {0};

    signal_group(run, SIGKILL);
    run->end->pid = run->spawned.pid;
    run->end->uptime = usec_sub(clock_now(), run->started_at);
    await_end(run);
    if (!leftovers_untrace(run->spawned.pid, reader, LEFTOVERS_LIMIT)) {
        if (run->end->stop == COMMAND_NOT_STOPPED)
            run->end->stop = COMMAND_TRACED;
        run->end->leftovers = !leftovers_end(reader, LEFTOVERS_LIMIT);
        return 0;
    }
    /* The C library's waitid() does not return the usage. */
    while (syscall(SYS_waitid, P_PID, run->spawned.pid, &info, WEXITED, &run->end->usage) < 0)
        if (errno != EINTR)
            return -errno;
    run->end->signalled = info.si_code != CLD_EXITED;
    run->end->core_dumped = info.si_code == CLD_DUMPED;
    run->end->code = info.si_status;
    run->end->leftovers = !leftovers_end(reader, LEFTOVERS_LIMIT);
    return 0;
}

static int live(struct run *run)
{
    const int r = watch(run), reaped = reap(run);

    finish_output(run);
    return r < 0 ? r : reaped;
}

/* ---- its start ---- */

/* Returns whether a later start may succeed: the program file is being written, or there is a
 * shortage of processes, descriptors or memory. */
static bool may_pass(int error)
{
    return error == -ETXTBSY || error == -EAGAIN || error == -ENOMEM || error == -EMFILE ||
           error == -ENFILE;
}

static int start(struct run *run)
{
    const struct command_options *options = run->options;
    const struct spawn_command command = {
        .path = options->path,
        .argv = options->argv,
        .mask = &run->mask,
        .input = options->input,
        .input_size = options->input_size,
        .channels = options->channels,
        .last = options->last,
        .last_size = options->last_size,
    };
    struct spawn_command attempt = command;
    int r = reader_start(options->reader);

    if (r < 0)
        return r;
    attempt.reader = options->reader->fd;
    /* Taken before the start: a short command may have ended when spawn_command() returns. */
    run->started_at = clock_now();
    r = spawn_command(&run->spawned, &attempt);
    if (r < 0)
        finish_output(run);
    return r;
}

/* Waits until the pause is over or the command is stopped. Returns 0 or -errno. */
static int rest(struct run *run, usec_t pause)
{
    const usec_t until = usec_add(clock_now(), pause);
    int r = 0;

    while (r == 0 && run->end->stop == COMMAND_NOT_STOPPED) {
        const usec_t now = clock_now();
        bool unused;

        tick(run, now);
        if (now >= until)
            break;
        r = turn(run, usec_min(TICK, usec_sub(until, now)), &unused);
    }
    return r;
}

/* Starts the command, repeatedly while it cannot start. Returns 0, even if the command was stopped
 * before it started, or -errno. */
static int start_in_time(struct run *run)
{
    usec_t pause = PAUSE_MIN;
    int r = start(run);

    while (may_pass(r) && run->end->stop == COMMAND_NOT_STOPPED) {
        if (run->start_error != r)
            fprintf(stderr, "troupe-exec: cannot run %s now: %s; trying again\n",
                    run->options->path, strerror(-r));
        run->start_error = r;
        r = rest(run, pause);
        if (r < 0 || run->end->stop != COMMAND_NOT_STOPPED)
            return r;
        pause = usec_min(2 * pause, PAUSE_MAX);
        r = start(run);
    }
    run->start_error = r;
    return r;
}

int command_run(const struct command_options *options, struct command_end *ret)
{
    struct command_end end = COMMAND_END_NULL;
    struct run run = {.options = options, .end = &end, .spawned = SPAWNED_NULL};
    int r = take_signals(&run);

    if (r < 0)
        return r;
    r = start_in_time(&run);
    if (r == 0 && run.spawned.pid > 0) {
        r = live(&run);
        spawned_deinit(&run.spawned);
    }
    end.start_error = run.start_error;
    give_signals_back(&run);
    if (r < 0) {
        command_end_deinit(&end);
        return r;
    }
    *ret = end;
    return 0;
}

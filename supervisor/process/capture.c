/* SPDX-License-Identifier: MIT */
#include "supervisor/process/capture.h"
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/scm.h"
#include "shared/base/utf8.h"
#include "supervisor/loop/toll.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Bounds what is read from one worker per turn, and after its death. */
#define READ_TURN 8192
/* More than a socket holds by default, so one such read gets all earlier output. */
#define READ_ALL ((size_t)256 * 1024)

/* Marks bytes that a read() has not overwritten. Not part of UTF-8. */
#define UNREAD '\xff'

_Static_assert(CAPTURE_LINE_MAX < CAPTURE_TAIL_MAX, "the tail has room behind an incomplete line");

/* Copies `size` bytes from position `begin` on. */
static void tail_read(const struct capture *capture, size_t begin, char *buffer, size_t size)
{
    size_t at = begin % CAPTURE_TAIL_MAX;
    size_t first = size < CAPTURE_TAIL_MAX - at ? size : CAPTURE_TAIL_MAX - at;
    memcpy(buffer, capture->memory->tail + at, first);
    memcpy(buffer + first, capture->memory->tail, size - first);
}

static void set_line(struct capture *capture, size_t line)
{
    capture->line = line;
    atomic_store_explicit(&capture->memory->line, line, memory_order_release);
}

static void set_end(struct capture *capture, size_t end)
{
    capture->end = end;
    atomic_store_explicit(&capture->memory->end, end, memory_order_release);
}

static void tail_write(struct capture *capture, const char *data, size_t size)
{
    size_t at = capture->end % CAPTURE_TAIL_MAX;
    size_t first = size < CAPTURE_TAIL_MAX - at ? size : CAPTURE_TAIL_MAX - at;
    memcpy(capture->memory->tail + at, data, first);
    memcpy(capture->memory->tail, data + first, size - first);
    set_end(capture, capture->end + size);
}

static void report_suppressed(struct capture *capture)
{
    char line[64];
    if (capture->n_suppressed == 0)
        return;
    (void)snprintf(line, sizeof(line), "… %llu lines suppressed",
                   (unsigned long long)capture->n_suppressed);
    capture->n_suppressed = 0;
    capture->is_ours = true;
    capture->fn(capture->userdata, line);
    capture->is_ours = false;
}

/* Counts a line against the limit. First reports the lines suppressed in the previous interval. */
static bool within_limit(struct capture *capture, usec_t now)
{
    if (usec_sub(now, capture->window_start) >= capture->interval || capture->n_window == 0) {
        capture->window_start = now;
        capture->n_window = 0;
        report_suppressed(capture);
    }
    if (capture->n_window >= capture->burst) {
        capture->n_suppressed++;
        if (!timer_armed(&capture->summary))
            timer_arm(loop_timers(capture->loop), &capture->summary,
                      usec_add(capture->window_start, capture->interval));
        return false;
    }
    capture->n_window++;
    return true;
}

/* Delivers the `size` bytes at `line`, a newline at their end excluded. The callback may call
 * capture_deinit(). */
static void deliver(struct capture *capture, size_t size, usec_t now)
{
    char raw[CAPTURE_LINE_MAX], line[UTF8_ESCAPED_MAX(CAPTURE_LINE_MAX)];
    const size_t next = capture->line + size;
    tail_read(capture, capture->line, raw, size);
    if (size > 0 && raw[size - 1] == '\n')
        size--;
    if (size > 0 && raw[size - 1] == '\r')
        size--;
    if (size > 0 && within_limit(capture, now)) {
        (void)utf8_escape(line, sizeof(line), raw, size);
        FAULT_POINT("capture.deliver");
        capture->fn(capture->userdata, line);
    }
    if (capture->memory)
        set_line(capture, next);
}

/* Returns the length of the first line that is not delivered, 0 if it is incomplete. */
static size_t next_line(const struct capture *capture)
{
    size_t size = capture->end - capture->line;
    size_t n = size < CAPTURE_LINE_MAX ? size : CAPTURE_LINE_MAX;
    size_t at = capture->line % CAPTURE_TAIL_MAX;
    size_t first = n < CAPTURE_TAIL_MAX - at ? n : CAPTURE_TAIL_MAX - at;
    const char *tail = capture->memory->tail;
    const char *newline = memchr(tail + at, '\n', first);
    if (newline)
        return (size_t)(newline - (tail + at)) + 1;
    newline = memchr(tail, '\n', n - first);
    if (newline)
        return first + (size_t)(newline - tail) + 1;
    return n == CAPTURE_LINE_MAX ? n : 0;
}

static void deliver_lines(struct capture *capture, usec_t now)
{
    size_t size;
    while (capture->memory && (size = next_line(capture)) > 0)
        deliver(capture, size, now);
}

/* Returns how much fits behind the lines that are not delivered. */
static size_t room(const struct capture *capture)
{
    return CAPTURE_TAIL_MAX - (capture->end - capture->line);
}

bool capture_has_output(const struct capture *capture)
{
    return capture->end > 0 || list_linked(&capture->reading.link);
}

size_t capture_position(const struct capture *capture)
{
    int unread = 0;
    if (!capture_has_output(capture) || capture->fd < 0 ||
        ioctl(capture->fd, FIONREAD, &unread) < 0)
        return capture->end;
    return capture->end + (size_t)unread;
}

size_t capture_tail(const struct capture *capture, size_t since, char *buffer, size_t size)
{
    size_t written = capture->end > since ? capture->end - since : 0;
    size_t n = written < CAPTURE_TAIL_MAX ? written : CAPTURE_TAIL_MAX;
    if (size == 0)
        return 0;
    bool cut = n < written || n > size - 1;
    if (n > size - 1)
        n = size - 1;
    if (!capture->memory)
        n = 0;
    if (n > 0)
        tail_read(capture, capture->end - n, buffer, n);
    /* Skip the rest of a character that was cut. */
    size_t skip = 0;
    while (cut && skip < n && skip < 3 && ((unsigned char)buffer[skip] & 0xc0) == 0x80)
        skip++;
    memmove(buffer, buffer + skip, n - skip);
    buffer[n - skip] = '\0';
    return n - skip;
}

static void capture_on_summary(struct timer *timer, usec_t now)
{
    struct capture *capture = (struct capture *)((char *)timer - offsetof(struct capture, summary));
    capture->n_window = 0;
    report_suppressed(capture);
}

static void stop_reading(struct capture *capture)
{
    task_cancel(&capture->reading);
    loop_unwatch(capture->loop, &capture->watch);
    if (capture->fd >= 0)
        loop_close_owned(capture->loop, TAKE_FD(capture->fd), capture->owner);
}

/* Stops reading what takes too long: see toll.h. */
static void refuse_waiters(struct capture *capture)
{
    const int fd = TAKE_FD(capture->fd);

    stop_reading(capture);
    loop_close_elsewhere(capture->loop, fd, capture->owner);
    capture->is_ours = true;
    capture->fn(capture->userdata,
                "output is no longer read: too much waits at its socket to be woken");
    capture->is_ours = false;
}

/* Reads `size` bytes, which are there, into the tail. They are marked before, so that the next
 * supervisor sees how many were read if this one dies before `end` says so. */
static ssize_t read_into_tail(struct capture *capture, size_t size)
{
    struct capture_memory *memory = capture->memory;
    const size_t at = capture->end % CAPTURE_TAIL_MAX;
    const size_t first = size < CAPTURE_TAIL_MAX - at ? size : CAPTURE_TAIL_MAX - at;
    struct iovec parts[] = {{memory->tail + at, first}, {memory->tail, size - first}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = ELEMENTS(parts)};
    ssize_t n;
    for (size_t i = 0; i < ELEMENTS(parts); i++)
        memset(parts[i].iov_base, UNREAD, parts[i].iov_len);
    atomic_store_explicit(&memory->reading_to, capture->end + size, memory_order_release);
    n = recvmsg(capture->fd, &message, MSG_DONTWAIT);
    FAULT_POINT("capture.read");
    if (n > 0)
        set_end(capture, capture->end + (size_t)n);
    return n;
}

/* Stops reading: receiving or closing these descriptors could block. */
static void refuse_descriptors(struct capture *capture)
{
    stop_reading(capture);
    capture->is_ours = true;
    capture->fn(capture->userdata, "output is no longer read: descriptors were sent with it");
    capture->is_ours = false;
}

/* Reads up to `max` bytes, as recv(2). */
static ssize_t read_some(struct capture *capture, size_t max)
{
    char buffer[CAPTURE_TAIL_MAX];
    size_t size = max;
    int unread = 0, r = 0;
    ssize_t n;
    if (!capture->refuses)
        r = scm_look(capture->fd, buffer, &size);
    if (r == SCM_E_DESCRIPTORS)
        refuse_descriptors(capture);
    if (r != 0) {
        errno = r < 0 ? -r : EAGAIN;
        return -1;
    }
    if (capture->memory && ioctl(capture->fd, FIONREAD, &unread) == 0 && unread > 0)
        return read_into_tail(capture, (size_t)unread < size ? (size_t)unread : size);
    n = recv(capture->fd, buffer, size, MSG_DONTWAIT);
    if (n > 0 && capture->memory)
        tail_write(capture, buffer, (size_t)n);
    return n;
}

/* Reads up to `max` bytes or somewhat more, and closes the socket at its end. */
static void read_up_to(struct capture *capture, size_t max, usec_t now)
{
    for (size_t total = 0; total < max && capture->fd >= 0;) {
        const size_t wanted = room(capture);
        const struct toll toll = toll_begin(now);
        ssize_t n = read_some(capture, wanted);
        const bool is_long = toll_end(toll, now, capture->owner) == TOLL_BARRED;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            stop_reading(capture);
        if (n <= 0)
            return;
        deliver_lines(capture, now);
        if (is_long && capture->fd >= 0)
            refuse_waiters(capture);
        if ((size_t)n < wanted)
            return;
        total += (size_t)n;
    }
}

static void capture_on_turn(struct task *task)
{
    struct capture *capture = list_entry(task, struct capture, reading);
    (void)loop_watch_events(capture->loop, &capture->watch, POLLIN);
    read_up_to(capture, READ_TURN, loop_now(capture->loop));
    if (capture->fd < 0 && capture->on_end)
        capture->on_end(capture->userdata);
}

/* Hundreds of workers that write all the time would make each turn long. */
static void capture_on_ready(void *userdata, uint32_t events)
{
    struct capture *capture = userdata;
    task_run(&capture->reading);
    if (list_linked(&capture->reading.link))
        (void)loop_watch_events(capture->loop, &capture->watch, 0);
}

void capture_init(struct capture *capture, struct work_queue *work, struct capture_memory *memory,
                  capture_line_fn fn, void *userdata)
{
    *capture = (struct capture)CAPTURE_NULL;
    capture->loop = work->loop;
    task_init(&capture->reading, work, capture_on_turn);
    capture->memory = memory;
    capture->interval = CAPTURE_INTERVAL;
    capture->burst = CAPTURE_BURST;
    capture->fn = fn;
    capture->userdata = userdata;
    timer_init(&capture->summary, capture_on_summary);
}

void capture_set_limit(struct capture *capture, usec_t interval, unsigned burst)
{
    const bool limited = interval > 0 && burst > 0;

    capture->interval = limited ? interval : 1; /* the time does not change within a turn */
    capture->burst = limited ? burst : CAPTURE_TURN_LINES;
}

void capture_forget(struct capture_memory *memory)
{
    atomic_store_explicit(&memory->end, 0, memory_order_relaxed);
    atomic_store_explicit(&memory->line, 0, memory_order_relaxed);
    atomic_store_explicit(&memory->reading_to, 0, memory_order_relaxed);
}

/* Forgets the output of the last process. Memory that was not used stays untouched. */
static void reset(struct capture *capture)
{
    if (capture->memory && capture->end > 0)
        capture_forget(capture->memory);
    capture->end = capture->line = 0;
}

static int read_from(struct capture *capture, int fd)
{
    stop_reading(capture);
    int r = loop_watch_fd(capture->loop, &capture->watch, fd, POLLIN, capture_on_ready, capture);
    if (r < 0)
        return r;
    capture->fd = fd;
    capture->refuses = scm_refuses(fd);
    return 0;
}

int capture_open(struct capture *capture, int *ret_write_fd)
{
    int fds[2];
    int r = fault_inject("socket");
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    _cleanup_close_ int read_fd = fds[0], write_fd = fds[1];
    (void)scm_refuse(read_fd);
    /* A program that reads from its standard output gets the end of file. */
    if (shutdown(read_fd, SHUT_WR) < 0)
        return -errno;
    r = read_from(capture, read_fd);
    if (r < 0)
        return r;
    (void)TAKE_FD(read_fd);
    reset(capture);
    *ret_write_fd = TAKE_FD(write_fd);
    return 0;
}

/* Adds what the last supervisor had read when it died. */
static void recover_read(struct capture *capture)
{
    const struct capture_memory *memory = capture->memory;
    const uint64_t to = atomic_load_explicit(&memory->reading_to, memory_order_relaxed);
    size_t n = to > capture->end && to - capture->end <= room(capture) ? to - capture->end : 0;
    while (n > 0 && memory->tail[(capture->end + n - 1) % CAPTURE_TAIL_MAX] == UNREAD)
        n--;
    if (n > 0)
        set_end(capture, capture->end + n);
}

int capture_adopt(struct capture *capture, int fd)
{
    const struct capture_memory *memory = capture->memory;
    int r = read_from(capture, fd);
    if (r < 0 || !memory)
        return r;
    capture->end = atomic_load_explicit(&memory->end, memory_order_relaxed);
    capture->line = atomic_load_explicit(&memory->line, memory_order_relaxed);
    if (capture->line > capture->end || capture->end - capture->line > CAPTURE_TAIL_MAX)
        set_line(capture, capture->end); /* damaged by what ended the supervisor */
    recover_read(capture);
    deliver_lines(capture, loop_now(capture->loop));
    return 0;
}

void capture_catch_up(struct capture *capture)
{
    read_up_to(capture, READ_ALL, loop_now(capture->loop));
}

static void deliver_rest(struct capture *capture, usec_t now)
{
    if (capture->end > capture->line)
        deliver(capture, capture->end - capture->line, now);
}

void capture_cut(struct capture *capture)
{
    const usec_t now = loop_now(capture->loop);

    read_up_to(capture, READ_ALL, now);
    deliver_rest(capture, now);
}

void capture_finish(struct capture *capture)
{
    usec_t now = loop_now(capture->loop);
    read_up_to(capture, READ_ALL, now);
    if (capture->fd >= 0)
        stop_reading(capture);
    deliver_rest(capture, now);
    timer_disarm(loop_timers(capture->loop), &capture->summary);
    report_suppressed(capture);
}

void capture_deinit(struct capture *capture)
{
    if (!capture->loop)
        return;
    stop_reading(capture);
    timer_disarm(loop_timers(capture->loop), &capture->summary);
    capture->memory = NULL;
    capture->end = capture->line = 0;
    capture->n_suppressed = 0;
}

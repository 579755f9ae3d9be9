/* SPDX-License-Identifier: MIT */

/* What the product calls to wait, for the time, for randomness, and to start threads and processes:
 * the linker redirects these calls here (--wrap). All else is the kernel's. */

#include "shared/base/cleanup.h"
#include "tests/world/machine.h"
#include "tests/world/sched.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Only the linker knows their names. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static long fail(int error)
{
    errno = error;
    return -1;
}

static usec_t from_timespec(const struct timespec *time)
{
    return (usec_t)time->tv_sec * USEC_PER_SEC + ((usec_t)time->tv_nsec + 999) / 1000;
}

static usec_t deadline_of(const struct timespec *timeout)
{
    return timeout ? usec_add(sim_now(), from_timespec(timeout)) : USEC_INFINITY;
}

/* ---- time ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    *ret = usec_to_timespec(sim_now() + (clock == CLOCK_REALTIME ? sim_realtime : 0));
    return 0;
}

int __wrap_sched_yield(void)
{
    sim_yield();
    return 0;
}

/* The product uses one to learn that the clock was set, and its expiry never comes. */
int __wrap_timerfd_create(int clock, int flags)
{
    return fcntl(SIM_CLOCK, F_DUPFD_CLOEXEC, 0);
}

/* ---- descriptors ---- */

int __real_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
                 const sigset_t *mask);

/* A thread that always finds something must not keep its turn for ever. */
int __wrap_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    static const struct timespec zero;
    static unsigned patience;
    const usec_t deadline = deadline_of(timeout);
    int r;

    sim_fault_point("wait");
    if (++patience % 64 == 0)
        sim_yield();
    while ((r = __real_ppoll(fds, n, &zero, mask)) == 0 && sim_now() < deadline)
        sim_block_fds(fds, n, deadline);
    return r;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    const struct timespec span = usec_to_timespec((usec_t)timeout * USEC_PER_MSEC);

    return __wrap_ppoll(fds, n, timeout < 0 ? NULL : &span, NULL);
}

int __wrap_epoll_pwait2(int fd, struct epoll_event *events, int max, const struct timespec *timeout,
                        const sigset_t *mask)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};

    (void)__wrap_ppoll(&poller, 1, timeout, mask);
    return epoll_wait(fd, events, max, 0);
}

ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __real_send(int fd, const void *data, size_t size, int flags);

/* Waits before a call that would block. */
static void await(int fd, int flags, short events)
{
    struct pollfd poller = {.fd = fd, .events = events};

    if (!(flags & MSG_DONTWAIT) && !(fcntl(fd, F_GETFL) & O_NONBLOCK))
        (void)__wrap_ppoll(&poller, 1, NULL, NULL);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t n;

    await(fd, flags, POLLIN);
    n = __real_recvmsg(fd, message, flags);
    if (n > 0)
        machine_name_sender(message);
    return n;
}

ssize_t __wrap_send(int fd, const void *data, size_t size, int flags)
{
    await(fd, flags, POLLOUT);
    return __real_send(fd, data, size, flags);
}

/* What the kernel says of this machine and of real processes is no part of the world. */
static bool is_kernel(const char *path)
{
    return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0;
}

int __real_open(const char *path, int flags, mode_t mode);
FILE *__real_fopen(const char *path, const char *mode);

int __wrap_open(const char *path, int flags, mode_t mode)
{
    return is_kernel(path) ? (int)fail(ENOENT) : __real_open(path, flags, mode);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    return is_kernel(path) ? (errno = ENOENT, NULL) : __real_fopen(path, mode);
}

/* No memory for room that nobody uses. */
int __wrap_posix_fallocate(int fd, off_t from, off_t size)
{
    return ftruncate(fd, from + size) < 0 ? errno : 0;
}

/* ---- system calls ---- */

long __real_syscall(long number, ...);

/* With eventfds, nobody waits in futex(2). */
long __wrap_syscall(long number, ...)
{
    long a[6], r;
    va_list list;

    va_start(list, number);
    for (size_t i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    switch (number) {
    case SYS_futex:
        abort();
    case SYS_pidfd_send_signal:
        return machine_signal_pidfd((int)a[0], (int)a[1]) < 0 ? fail(ESRCH) : 0;
    case SYS_pidfd_open:
        r = machine_open_pidfd((pid_t)a[0]);
        return r < 0 ? fail(ESRCH) : r;
    default:
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)buffer)[i] = (uint8_t)sim_below(256);
    return (ssize_t)size;
}

/* Processes of the world share the variable that has it. */
uint64_t __wrap_hash_secret(void)
{
    return sim_self ? sim_self->secret : 1;
}

/* ---- threads ---- */

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*fn)(void *),
                          void *argument)
{
    *ret = sim_add_thread(fn, argument);
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
    sim_join_thread(thread);
    return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int r;

    while ((r = pthread_mutex_trylock(mutex)) == EBUSY)
        sim_yield();
    return r;
}

int __real_pthread_cond_signal(pthread_cond_t *condition);

int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    sim_wake();
    return __real_pthread_cond_signal(condition);
}

static int wait_signal(pthread_mutex_t *mutex, usec_t deadline)
{
    (void)pthread_mutex_unlock(mutex);
    sim_sleep(deadline);
    return __wrap_pthread_mutex_lock(mutex);
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    return wait_signal(mutex, USEC_INFINITY);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    (void)wait_signal(mutex, from_timespec(until));
    return sim_now() >= from_timespec(until) ? ETIMEDOUT : 0;
}

/* ---- fault points ---- */

/* Fails calls whose failure has no lasting effect. */
int __wrap_fault_inject(const char *what)
{
    static const char *const names[] = {"alloc", "kept-result", "json",    "mmap",
                                        "memfd", "envelope",    "receive", "restore"};

    if (strcmp(what, "safe-mode") == 0)
        return -EPERM;
    if (strcmp(what, "visits") == 0) /* no fault: as if there were very many cells */
        return sim_self && sim_one_in(2) ? -EPERM : 0;
    if (!sim_self || sim_self != machine_supervisor())
        return 0;
    for (size_t i = 0; i < ELEMENTS(names); i++)
        if (strcmp(names[i], what) == 0 && sim_one_in(sim_chance_now(SIM_FAIL_CALL, 8))) {
            sim_trace("%s fails", what);
            return -ENOMEM;
        }
    return 0;
}

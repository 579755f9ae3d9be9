/* SPDX-License-Identifier: MIT */
#include "shared/base/closer.h"

#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "shared/base/log.h"
#include "shared/base/scm.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Interrupts a lingering close. Harmless from other senders. */
#define NUDGE_SIGNAL SIGURG
#define NUDGE_NSEC   1000000

/* A close that no signal interrupts (a file server that never answers) occupies its thread. */
#define THREADS_MAX 4
#define STUCK       (5 * USEC_PER_SEC)
#define STACK_SIZE  ((size_t)256 << 10)

static struct {
    bool started;
    int queue[2]; /* a pipe of descriptor numbers: bounded and without a lock */
    unsigned n_threads;
    uint64_t n_queued;
    _Atomic uint64_t n_closed; /* changed by the threads */
    uint64_t seen_closed;      /* n_closed when it last changed */
    usec_t seen_at;            /* time of that change */
    sem_t begun;               /* posted by each thread */
} closer;

static void do_nothing(int signo)
{
    (void)signo;
}

/* A timer that sends the signal to the calling thread. */
static bool nudge_new(timer_t *ret)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = NUDGE_SIGNAL};

    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    return timer_create(CLOCK_MONOTONIC, &event, ret) == 0;
}

/* Periodic: a signal that comes before the wait begins interrupts nothing. */
static void nudge_set(timer_t timer, long nsec)
{
    const struct itimerspec time = {.it_value.tv_nsec = nsec, .it_interval.tv_nsec = nsec};

    (void)timer_settime(timer, 0, &time, NULL);
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t size = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

/* Returns whether there was one, perhaps without bytes: that looks like the end of the socket, but
 * comes with its sender's credentials. Descriptors for which there is no room are closed by the
 * kernel. */
static bool drop_message(int fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    char bytes[4096];
    struct iovec vector = {.iov_base = bytes, .iov_len = sizeof(bytes)};
    struct msghdr message = {
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    const ssize_t n = scm_receive(fd, &message, MSG_DONTWAIT);

    return n > 0 || (n == 0 && message.msg_controllen > 0) || (n < 0 && errno == EINTR);
}

static void empty_socket(int fd)
{
    const int yes = 1;
    char bytes[4096];
    ssize_t n;

    if (is_stream(fd)) {
        while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0 || (n < 0 && errno == EINTR))
            ;
    } else if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) == 0) {
        while (drop_message(fd))
            ;
    }
}

/* `entry` is a descriptor, or ~ one that closer_close_socket() was called for. */
static void close_entry(int entry)
{
    const int fd = entry < 0 ? ~entry : entry;

    if (entry < 0)
        empty_socket(fd);
    (void)close(fd);
}

static void *closer_run(void *unused)
{
    timer_t timer;
    const bool nudged = nudge_new(&timer);
    ssize_t n;
    int entry;

    (void)sem_post(&closer.begun);
    while ((n = read(closer.queue[0], &entry, sizeof(entry))) == sizeof(entry) || errno == EINTR) {
        if (n != sizeof(entry))
            continue;
        if (nudged)
            nudge_set(timer, NUDGE_NSEC);
        close_entry(entry);
        if (nudged)
            nudge_set(timer, 0);
        /* Read by closer_watch() and closer_settle(). */
        atomic_fetch_add_explicit(&closer.n_closed, 1, memory_order_relaxed);
    }
    return unused;
}

/* A child of fork() that was made before a new thread ran would wait for it in some calls of the
 * C library, for ever. */
static void wait_begun(void)
{
    while (sem_wait(&closer.begun) < 0 && errno == EINTR)
        ;
}

/* Its threads block all other signals, which are for the loop. */
static int add_thread(void)
{
    pthread_attr_t attributes;
    sigset_t blocked, saved;
    pthread_t thread;
    int r = pthread_attr_init(&attributes);

    if (r != 0)
        return -r;
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&blocked);
    sigdelset(&blocked, NUDGE_SIGNAL);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &saved);
    r = pthread_create(&thread, &attributes, closer_run, NULL);
    (void)pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attributes);
    closer.n_threads += r == 0;
    if (r == 0)
        wait_begun();
    return -r;
}

int closer_start(void)
{
    const struct sigaction action = {.sa_handler = do_nothing};
    int r;

    if (closer.started)
        return 0;
    if (sem_init(&closer.begun, 0, 0) < 0 || pipe2(closer.queue, O_CLOEXEC) < 0)
        return -errno;
    if (fcntl(closer.queue[1], F_SETFL, O_WRONLY | O_NONBLOCK) < 0 ||
        sigaction(NUDGE_SIGNAL, &action, NULL) < 0)
        r = -errno;
    else
        r = add_thread();
    if (r < 0) {
        close_fd(closer.queue[0]);
        close_fd(closer.queue[1]);
        return r;
    }
    closer.started = true;
    return 0;
}

void closer_forget(void)
{
    if (!closer.started)
        return;
    close_fd(closer.queue[0]);
    close_fd(closer.queue[1]);
    closer.started = false;
    closer.n_threads = 0;
    closer.n_queued = closer.seen_closed = 0;
    atomic_store_explicit(&closer.n_closed, 0, memory_order_relaxed); /* no thread any more */
}

/* Adds a thread when all others are stuck. */
static void closer_watch(void)
{
    const uint64_t n_closed = atomic_load_explicit(&closer.n_closed, memory_order_relaxed);
    const usec_t now = clock_now();
    int r;

    if (n_closed == closer.n_queued || n_closed != closer.seen_closed) {
        closer.seen_closed = n_closed;
        closer.seen_at = now;
        return;
    }
    if (now - closer.seen_at < STUCK || closer.n_threads == THREADS_MAX)
        return;
    closer.seen_at = now;
    r = add_thread();
    log_warning("a descriptor from a worker or client does not close; %s",
                r < 0 ? strerror(-r) : "another thread closes what follows");
}

static void queue_entry(int entry)
{
    const int saved = errno;

    if (closer.started)
        closer_watch();
    /* If the pipe is full, with thousands waiting, the descriptor leaks rather than block the loop.
     */
    if (!closer.started)
        close_entry(entry);
    else if (write(closer.queue[1], &entry, sizeof(entry)) == sizeof(entry))
        closer.n_queued++;
    errno = saved;
}

void closer_close(int fd)
{
    if (fd >= 0)
        queue_entry(fd);
}

void closer_close_socket(int fd)
{
    if (fd >= 0)
        queue_entry(~fd);
}

int closer_close_passed(int fd)
{
    const int saved = errno;
    struct stat status;

    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode))
        closer_close(fd);
    else
        close_fd(fd);
    errno = saved;
    return -1;
}

void closer_settle(unsigned msec)
{
    const struct timespec pause = {.tv_nsec = NUDGE_NSEC};

    while (closer.started && msec-- > 0 &&
           atomic_load_explicit(&closer.n_closed, memory_order_relaxed) != closer.n_queued)
        (void)nanosleep(&pause, NULL);
}

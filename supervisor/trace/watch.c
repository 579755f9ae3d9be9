/* SPDX-License-Identifier: MIT */
#include "supervisor/trace/watch.h"
#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include "supervisor/trace/unwind.h"
#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Threads. Further ones, such as those of a process that forks without end, are not traced, nor are
 * their children. */
#define TRACED_MAX 256
/* How long a process that has crashed is held up: until its threads have stopped, and by copying.
 */
#define STOP_USEC   (20 * USEC_PER_MSEC)
#define COPY_USEC   (25 * USEC_PER_MSEC)
#define ATTACH_USEC (500 * USEC_PER_MSEC)
#define UNWIND_SEC  10
#define UNWIND_CPU  8
/* Crashes that are reported, and the pause after which another one may be. */
#define BURST       1000
#define REFILL_USEC (50 * USEC_PER_MSEC)

/* Stops that are handled between two orders. */
#define STOPS_MAX 256

#define OPTIONS                                                                                    \
    (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC)

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

struct watcher {
    struct trace_output *output;
    bool drops;
    pid_t traced[TRACED_MAX]; /* threads */
    size_t n_traced;

    /* The sample that waits for an order, or is being unwound by `unwinder`. */
    struct target targets[SAMPLE_TARGETS_MAX];
    size_t n_targets;
    pid_t unwinder;

    unsigned tokens;
    usec_t filled_at;
};

/* Returns whether it was sent. */
static bool tell(const struct watch_notice *notice)
{
    return send(TRACE_FD_ORDERS, notice, sizeof(*notice), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

/* ---- what it traces ---- */

static size_t find(const struct watcher *watcher, pid_t tid)
{
    size_t i = 0;

    while (i < watcher->n_traced && watcher->traced[i] != tid)
        i++;
    return i;
}

/* Returns whether there is room. */
static bool add(struct watcher *watcher, pid_t tid)
{
    if (find(watcher, tid) < watcher->n_traced)
        return true;
    if (watcher->n_traced == TRACED_MAX)
        return false;
    watcher->traced[watcher->n_traced++] = tid;
    return true;
}

static void drop(struct watcher *watcher, pid_t tid)
{
    const size_t i = find(watcher, tid);

    if (i < watcher->n_traced)
        watcher->traced[i] = watcher->traced[--watcher->n_traced];
}

/* Returns whether it has found a thread that was not traced. */
static bool attach_threads(struct watcher *watcher, pid_t pid)
{
    const size_t before = watcher->n_traced;
    const struct dirent *entry;
    char path[32];
    DIR *directory;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    directory = opendir(path);
    while (directory && watcher->n_traced < TRACED_MAX && (entry = readdir(directory))) {
        const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0 && find(watcher, tid) == watcher->n_traced &&
            ptrace(PTRACE_SEIZE, tid, 0, OPTIONS) == 0)
            (void)add(watcher, tid);
    }
    if (directory)
        (void)closedir(directory);
    return watcher->n_traced > before;
}

/* What a traced thread starts is traced. So children are listed after their parent's threads are
 * attached, and none is missed. */
static int attach_all(struct watcher *watcher, pid_t pid)
{
    pid_t children[TRACED_MAX];

    if (ptrace(PTRACE_SEIZE, pid, 0, OPTIONS) < 0)
        return -errno;
    (void)add(watcher, pid);
    while (attach_threads(watcher, pid))
        ;
    for (size_t i = 0; i < watcher->n_traced; i++) {
        const pid_t tid = watcher->traced[i];
        struct facts facts;
        const size_t n = facts_read(tid, &facts)
                             ? thread_children(facts.pid, tid, children, ELEMENTS(children))
                             : 0;
        for (size_t k = 0; k < n; k++)
            while (attach_threads(watcher, children[k]))
                ;
    }
    return 0;
}

/* ---- samples ---- */

static bool is_busy(const struct watcher *watcher)
{
    return watcher->n_targets > 0;
}

static void forget(struct watcher *watcher)
{
    for (size_t i = 0; i < watcher->n_targets; i++)
        target_close(&watcher->targets[i]);
    watcher->n_targets = 0;
    watcher->unwinder = 0;
}

static void begin_child(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)close(TRACE_FD_ORDERS);
}

/* Copies in a process that may do nothing but read. The stopped threads continue when their stops
 * are handled. */
static int take(struct watcher *watcher, const struct hints *hints)
{
    const int n = targets_open(watcher->targets, hints->pid, hints->crashed == 0);
    int r = n < 0 ? n : 0;
    pid_t copier;

    watcher->n_targets = n > 0 ? (size_t)n : 0;
    if (r == 0)
        r = sample_stop(watcher->targets, watcher->n_targets, hints, STOP_USEC);
    copier = r == 0 ? fork() : -1;
    if (copier == 0) {
        begin_child();
        r = confine();
        if (r == 0)
            sample_copy(watcher->targets, watcher->n_targets, hints);
        _exit(-r);
    }
    if (copier > 0)
        sample_await(copier, COPY_USEC);
    if (r == 0 && watcher->targets[0].sample->complete)
        return 0;
    forget(watcher);
    return r < 0 ? r : -ESRCH;
}

static void on_unwound(struct watcher *watcher, int error)
{
    forget(watcher);
    (void)tell(&(struct watch_notice){.kind = WATCH_UNWOUND, .error = error});
}

static void start_unwinding(struct watcher *watcher)
{
    const struct rlimit limit = {UNWIND_CPU, UNWIND_CPU};

    watcher->output->size = 0;
    watcher->unwinder = fork();
    if (watcher->unwinder == 0) {
        begin_child();
        (void)setrlimit(RLIMIT_CPU, &limit);
        (void)alarm(UNWIND_SEC);
        _exit(-unwind_all(watcher->targets, watcher->n_targets, watcher->output));
    }
    if (watcher->unwinder < 0)
        on_unwound(watcher, -errno);
}

/* ---- what has stopped ---- */

static bool has(uint64_t set, int signal)
{
    return set >> (signal - 1) & 1;
}

static bool may_tell(struct watcher *watcher)
{
    const usec_t now = clock_now();
    const usec_t n = usec_sub(now, watcher->filled_at) / REFILL_USEC;

    if (n > 0) {
        watcher->tokens = n > BURST - watcher->tokens ? BURST : watcher->tokens + (unsigned)n;
        watcher->filled_at = now;
    }
    if (watcher->tokens == 0 || is_busy(watcher))
        return false;
    watcher->tokens--;
    return true;
}

/* A signal that the process handles is no crash. A handler that then ends the process does so by a
 * signal without a handler. */
static void on_signal(struct watcher *watcher, pid_t tid, int signal)
{
    struct watch_notice notice = {.kind = WATCH_CRASHED, .signal = signal};
    struct facts facts;
    size_t i = 0;

    while (i < ELEMENTS(SIGNALS) && SIGNALS[i] != signal)
        i++;
    if (i == ELEMENTS(SIGNALS) || !facts_read(tid, &facts) || has(facts.caught, signal) ||
        has(facts.ignored, signal) || !may_tell(watcher))
        return;
    notice.pid = facts.pid;
    notice.inner_pid = facts.inner_pid;
    notice.error = take(watcher, &(struct hints){.pid = facts.pid, .crashed = facts.inner_tid});
    memcpy(notice.name, facts.name, sizeof(notice.name));
    if (!tell(&notice))
        forget(watcher);
}

static bool is_group_stop(int signal)
{
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

static void on_stop(struct watcher *watcher, pid_t tid, int status)
{
    const int signal = status & 0xff, event = status >> 8;
    const bool delivers = event == 0;
    unsigned long former;

    if (!add(watcher, tid)) {
        (void)ptrace(PTRACE_DETACH, tid, 0, delivers ? signal : 0);
        return;
    }
    if (event == PTRACE_EVENT_STOP && is_group_stop(signal)) {
        (void)ptrace(PTRACE_LISTEN, tid, 0, 0);
        return;
    }
    /* A thread that executes a program takes the number of the process's first thread. */
    if (event == PTRACE_EVENT_EXEC && ptrace(PTRACE_GETEVENTMSG, tid, 0, &former) == 0 &&
        (pid_t)former != tid)
        drop(watcher, (pid_t)former);
    if (delivers)
        on_signal(watcher, tid, signal);
    (void)ptrace(PTRACE_CONT, tid, 0, delivers ? signal : 0);
}

static void on_end(struct watcher *watcher, pid_t pid)
{
    siginfo_t info = {0};

    (void)waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | __WALL);
    if (pid == watcher->unwinder)
        on_unwound(watcher, 0);
    else
        drop(watcher, pid);
}

/* Only looks at stops (WNOWAIT): if this process is killed before it has handled a stop, the thread
 * still gets its signal. Returns whether there may be more. */
static bool handle_all(struct watcher *watcher)
{
    for (unsigned i = 0; i < STOPS_MAX; i++) {
        siginfo_t info = {0};

        if (waitid(P_ALL, 0, &info, WSTOPPED | WEXITED | WNOWAIT | WNOHANG | __WALL) < 0 ||
            info.si_pid == 0)
            return false;
        if (info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED)
            on_stop(watcher, info.si_pid, info.si_status);
        else
            on_end(watcher, info.si_pid);
    }
    return true;
}

/* ---- orders ---- */

/* Gives up CAP_SYS_PTRACE, which the worker lacks: it could take over a process of its user. */
static int drop_capability(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    const uint32_t bit = 1u << CAP_SYS_PTRACE;

    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    data[0].effective &= ~bit;
    data[0].permitted &= ~bit;
    data[0].inheritable &= ~bit;
    return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int attach(struct watcher *watcher, pid_t pid, int pidfd)
{
    const usec_t until = usec_add(clock_now(), ATTACH_USEC);
    const struct timespec pause = {.tv_nsec = 1000000};
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    int r = pidfd < 0 ? -EBADF : attach_all(watcher, pid);

    /* Without privileges, this is possible only once it runs its program. */
    while (r == -EPERM && clock_now() < until) {
        (void)eventfd_write(TRACE_FD_RELEASE, 1);
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        r = attach_all(watcher, pid);
    }

    /* If the process has not ended, its pid was not reused. */
    if (r == 0 && poll(&end, 1, 0) != 0)
        r = -ESRCH;
    if (r == 0 && watcher->drops)
        r = drop_capability();
    (void)eventfd_write(TRACE_FD_RELEASE, 1); /* the process waits for this */
    (void)tell(&(struct watch_notice){.kind = WATCH_ATTACHED, .error = r});
    return r;
}

static void look(struct watcher *watcher, const struct watch_order *order)
{
    const struct hints hints = {order->pid, order->crashed, order->context, order->python,
                                order->python_version};
    const int r = is_busy(watcher) ? -EBUSY : take(watcher, &hints);

    (void)tell(&(struct watch_notice){.kind = WATCH_RELEASED});
    if (r == 0) {
        start_unwinding(watcher);
        return;
    }
    if (watcher->unwinder == 0)
        watcher->output->size = 0; /* it is that of the last look */
    (void)tell(&(struct watch_notice){.kind = WATCH_UNWOUND, .error = r});
}

static int obey(struct watcher *watcher, const struct watch_order *order, int fd)
{
    switch (order->kind) {
    case WATCH_ATTACH:
        return attach(watcher, order->pid, fd);
    case WATCH_LOOK:
        look(watcher, order);
        return 0;
    case WATCH_UNWIND:
        if (is_busy(watcher) && watcher->unwinder == 0)
            start_unwinding(watcher);
        return 0;
    case WATCH_DROP:
        if (watcher->unwinder == 0)
            forget(watcher);
        return 0;
    default:
        return -EBADMSG;
    }
}

static void close_one(int fd)
{
    close_fd(fd);
}

/* Returns 0, or -errno when this process has to end. */
static int take_order(struct watcher *watcher)
{
    struct watch_order order;
    struct iovec data = {.iov_base = &order, .iov_len = sizeof(order)};
    union scm_control control;
    struct msghdr message = SCM_MESSAGE(&data, &control);
    const ssize_t n = recvmsg(TRACE_FD_ORDERS, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int fd = -1, r;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    (void)scm_take(&message, &fd, 1, close_one);
    r = n == sizeof(order) ? obey(watcher, &order, fd) : -EPIPE;
    close_fd(fd);
    return r;
}

int watch(struct trace_output *output, bool drops)
{
    struct watcher watcher = {
        .output = output, .drops = drops, .tokens = BURST, .filled_at = clock_now()};
    struct pollfd pollers[2] = {{.fd = TRACE_FD_ORDERS, .events = POLLIN}, {.events = POLLIN}};
    sigset_t signals;
    bool more = false;
    int r = 0;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &signals, NULL) < 0)
        return -errno;
    pollers[1].fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    while (r == 0 && pollers[1].fd >= 0) {
        struct signalfd_siginfo info;

        if (poll(pollers, 2, more ? 0 : -1) < 0 && errno != EINTR)
            break;
        while (read(pollers[1].fd, &info, sizeof(info)) > 0)
            ;
        r = take_order(&watcher);
        more = handle_all(&watcher);
    }
    return r;
}

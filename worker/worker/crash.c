/* SPDX-License-Identifier: MIT */
#include "worker/worker/crash.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* At most: the supervisor may be gone, or have too many others to look at. */
#define CRASH_WAIT_MSEC 40
#define STACK_SIZE      ((size_t)64 * 1024)

/* The interpreter's, if this process is one of Python. */
extern const char _PyRuntime[] __attribute__((weak));
extern const unsigned long Py_Version __attribute__((weak));

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

/* All that the handler uses: it calls nothing that could be in the middle of something. */
static struct memory_header *_Atomic inbox;
static struct memory_header *outbox;
static int wake_fd;
static pid_t watched;      /* a process that this one forks is not the worker */
static bool is_restricted; /* only ancestors may trace a process, unless it permits more */
static struct sigaction before[ELEMENTS(SIGNALS)];
static atomic_flag crashing = ATOMIC_FLAG_INIT;
static _Atomic long crashed; /* the thread that has set it */

static void wake_supervisor(void)
{
    const uint64_t one = 1;

    /* Partner: the supervisor's load in channel_prepare_sleep(). */
    (void)atomic_fetch_add_explicit(&outbox->worker.bell, 1, memory_order_release);
    if (outbox->wake_backend == WAKE_FUTEX)
        (void)wake_futex_wake(&outbox->worker.bell);
    else
        (void)!write(wake_fd, &one, sizeof(one));
}

static bool is_wanted(const struct memory_header *header)
{
    /* Partner: the supervisor's store once it has looked. */
    return atomic_load_explicit(&header->evidence, memory_order_acquire) != 0;
}

static void report(const struct memory_header *header, int signo, const siginfo_t *info,
                   const void *context)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    outbox->crash.tid = (uint32_t)syscall(SYS_gettid);
    outbox->crash.signal = signo;
    outbox->crash.code = info->si_code;
    outbox->crash.address = (uint64_t)(uintptr_t)info->si_addr;
    outbox->crash.context = (uint64_t)(uintptr_t)context;
    if (is_restricted)
        (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    /* Partner: the load in the supervisor's endpoint_poll(). */
    atomic_store_explicit(&outbox->crashed, 1, memory_order_release);
    wake_supervisor();
    for (unsigned i = 0; i < CRASH_WAIT_MSEC && is_wanted(header); i++)
        (void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
}

/* Has the signal act as before. A fault recurs when the handler returns, and abort() goes on; what
 * a process has sent is sent again. */
static void act_as_before(size_t i, siginfo_t *info, void *context)
{
    const struct sigaction *action = &before[i];

    (void)sigaction(SIGNALS[i], action, NULL);
    if (action->sa_flags & SA_SIGINFO)
        action->sa_sigaction(SIGNALS[i], info, context);
    else if (action->sa_handler != SIG_DFL)
        action->sa_handler(SIGNALS[i]);
    else if (info->si_code <= 0)
        (void)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGNALS[i]);
}

/* Another thread that crashes meanwhile waits for the end of the process. The same one does not:
 * the kernel ignores abort()'s first signal to process 1 of a PID namespace. */
static void on_crash(int signo, siginfo_t *info, void *context)
{
    const struct memory_header *header = inbox;
    const long thread = syscall(SYS_gettid);
    const int error = errno;
    size_t i = 0;

    while (SIGNALS[i] != signo)
        i++;
    if (!atomic_flag_test_and_set(&crashing)) {
        crashed = thread;
        if (header && getpid() == watched && is_wanted(header))
            report(header, signo, info, context);
    } else if (crashed != thread) {
        (void)poll(NULL, 0, 2 * CRASH_WAIT_MSEC);
    }
    act_as_before(i, info, context);
    errno = error;
}

/* Not from the heap, which may be what is broken. */
static void give_stack(void)
{
    stack_t stack;

    if (sigaltstack(NULL, &stack) < 0 || !(stack.ss_flags & SS_DISABLE))
        return;
    stack = (stack_t){.ss_size = STACK_SIZE};
    stack.ss_sp = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack.ss_sp != MAP_FAILED && sigaltstack(&stack, NULL) < 0)
        (void)munmap(stack.ss_sp, STACK_SIZE);
}

/* kernel.yama.ptrace_scope=1 */
static bool read_restriction(void)
{
    _cleanup_close_ int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    char digit = '0';

    return fd >= 0 && read(fd, &digit, 1) == 1 && digit == '1';
}

/* Returns whether the signal is to be handled here first. An ignored one does not end the process.
 */
static bool is_ours(const struct sigaction *action)
{
    if (action->sa_flags & SA_SIGINFO)
        return _PyRuntime && action->sa_sigaction != on_crash;
    return action->sa_handler == SIG_DFL || (_PyRuntime && action->sa_handler != SIG_IGN);
}

void crash_watch(const struct channel *channel)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction present;

    /* Partner: the supervisor's store at the start of this worker. */
    if (!is_wanted(channel->theirs.header))
        return;
    watched = getpid();
    is_restricted = read_restriction();
    wake_fd = channel->wake_fd;
    outbox = channel->mine.header;
    inbox = channel->theirs.header;
    if (_PyRuntime && &Py_Version) {
        outbox->crash.python = (uint64_t)(uintptr_t)_PyRuntime;
        outbox->crash.python_version = (uint32_t)Py_Version;
    }
    give_stack();
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ELEMENTS(SIGNALS); i++)
        if (sigaction(SIGNALS[i], NULL, &present) == 0 && is_ours(&present)) {
            before[i] = present;
            (void)sigaction(SIGNALS[i], &action, NULL);
        }
}

void crash_forget(void)
{
    inbox = NULL;
}

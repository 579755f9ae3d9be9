/* SPDX-License-Identifier: MIT */

/* A template: a process without rings and jobs that forks workers
 * (shared/protocol/template-wire.h).
 */

#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include "shared/protocol/template-wire.h"
#include "worker/public.h"
#include "worker/troupe.h"
#include "worker/worker/worker-heap.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The smallest size with which glibc registers its area for restartable sequences. */
#define RSEQ_SIZE_MIN 32u

/* The names of variables that workers do not have. */
static char *only_here;

struct request {
    char text[TEMPLATE_REQUEST_MAX + 1];
    size_t size;
    int fds[TEMPLATE_PASSED_MAX];
    size_t n_fds;
};

/* ---- what cannot be forked ---- */

/* Returns what a descriptor is that two processes must not share, or NULL. */
static const char *unsafe_kind(const char *target)
{
    static const struct {
        const char *prefix, *kind;
    } kinds[] = {
        {"socket:", "a socket"},
        {"anon_inode:[io_uring]", "an io_uring"},
        {"anon_inode:[eventpoll]", "an epoll instance"},
        {"/dev/nvidia", "a device of CUDA"},
        {"/dev/kfd", "a device of ROCm"},
        {"/dev/dri/", "a device of a GPU"},
    };

    for (size_t i = 0; i < ELEMENTS(kinds); i++)
        if (strncmp(target, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
            return kinds[i].kind;
    return NULL;
}

static bool is_own(int fd)
{
    return fd < TEMPLATE_FIRST_FD + TEMPLATE_FDS_MAX;
}

static bool check_descriptor(DIR *directory, const char *name, char *reason)
{
    const int fd = atoi(name);
    char target[64] = "";
    const char *kind;

    if (*name == '.' || is_own(fd) ||
        readlinkat(dirfd(directory), name, target, sizeof(target) - 1) < 0)
        return true;
    kind = unsafe_kind(target);
    if (kind)
        (void)snprintf(reason, TEMPLATE_REASON_MAX, "descriptor %d is %s", fd, kind);
    return !kind;
}

static bool check_descriptors(char *reason)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    bool safe = true;

    if (!directory) {
        (void)snprintf(reason, TEMPLATE_REASON_MAX, "cannot read /proc/self/fd: %s",
                       strerror(errno));
        return false;
    }
    while (safe && (entry = readdir(directory)))
        safe = check_descriptor(directory, entry->d_name, reason);
    (void)closedir(directory);
    return safe;
}

/* A fork copies the calling thread alone, and locks that others hold stay locked. */
static bool check_threads(char *reason)
{
    struct stat status;

    if (stat("/proc/self/task", &status) < 0) {
        (void)snprintf(reason, TEMPLATE_REASON_MAX, "cannot read /proc/self/task: %s",
                       strerror(errno));
        return false;
    }
    if (status.st_nlink > 3)
        (void)snprintf(reason, TEMPLATE_REASON_MAX, "it has %u threads",
                       (unsigned)status.st_nlink - 2);
    return status.st_nlink <= 3;
}

/* Other children would end with the first worker. */
static bool check_children(char *reason)
{
    siginfo_t info;

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
        return true;
    (void)snprintf(reason, TEMPLATE_REASON_MAX, "it has child processes");
    return false;
}

/* ---- the new process ---- */

/* Gives the worker a session, if the template has one, or a process group, like a worker that was
 * executed. Call it once the keeper knows the worker: before that, the keeper would take the leader
 * of a session or group for an orphan. */
static void leave_template(pid_t template)
{
    if (getsid(0) == template)
        (void)setsid();
    else
        (void)setpgid(0, 0);
}

/* The kernel drops the registration with vfork(), and the C library does not know that. */
static void register_rseq(void)
{
    unsigned size = RSEQ_SIZE_MIN;

    if (__rseq_size == 0)
        return;
    while (size < __rseq_size)
        size += RSEQ_SIZE_MIN;
    (void)syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, size, 0, RSEQ_SIG);
}

static int place_descriptors(struct request *request)
{
    int next = TEMPLATE_FIRST_FD;

    if (dup2(request->fds[1], STDOUT_FILENO) < 0 || dup2(request->fds[1], STDERR_FILENO) < 0)
        return -errno;
    for (size_t i = 2; i < request->n_fds; i++)
        if (dup2(request->fds[i], next++) < 0)
            return -errno;
    for (; next < TEMPLATE_FIRST_FD + TEMPLATE_FDS_MAX; next++)
        (void)close(next);
    for (size_t i = 1; i < request->n_fds; i++)
        request->fds[i] = close_fd(request->fds[i]);
    return 0;
}

static int set_variables(const struct request *request)
{
    char *rest = only_here;

    for (const char *name; (name = strtok_r(rest, " ", &rest));)
        (void)unsetenv(name);
    for (const char *text = request->text; text < request->text + request->size;
         text += strlen(text) + 1) {
        char name[64];
        const char *value = strchr(text, '=');

        if (!value || (size_t)(value - text) >= sizeof(name))
            return -EPROTO;
        (void)snprintf(name, sizeof(name), "%.*s", (int)(value - text), text);
        if (setenv(name, value + 1, 1) < 0)
            return -errno;
    }
    return 0;
}

/* Waits until the keeper has taken the process. The keeper is its parent only after the end of the
 * process between them, which closes `ended`. */
static int pass_gate(int gate, int ended)
{
    char byte = 0;

    while (read(ended, &byte, 1) < 0 && errno == EINTR)
        ;
    (void)close(ended);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (send(gate, &byte, 1, MSG_NOSIGNAL) < 0)
        return -errno;
    while (recv(gate, &byte, 1, 0) != 1)
        if (errno != EINTR)
            return -ECONNRESET;
    (void)close(gate);
    return 0;
}

static void become_worker(struct request *request, pid_t template, int ended)
{
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    register_rseq();
    if (place_descriptors(request) < 0 || set_variables(request) < 0 ||
        pass_gate(request->fds[0], ended) < 0)
        _exit(EXIT_FAILURE);
    leave_template(template);
}

/* ---- forking ---- */

/*
 * fork() alone runs the handlers of pthread_atfork(3), which libraries rely on. It is called by a
 * short-lived process that shares this one's memory: when that ends, the worker gets the keeper as
 * its parent, since the keeper is the subreaper of all its workers. The memory is copied once.
 * Returns 1 in the worker, 0 in the template, or -errno.
 */
static __attribute__((noinline)) int fork_twice(void)
{
    static volatile int error;
    pid_t between;

    error = 0;
    between = vfork();
    if (between == 0) {
        const pid_t worker = fork();

        if (worker == 0)
            return 1;
        if (worker < 0)
            error = errno;
        _exit(0);
    }
    if (between < 0)
        return -errno;
    while (waitpid(between, NULL, __WALL) < 0 && errno == EINTR)
        ;
    return -error;
}

/* Returns as fork_twice(). */
static int fork_worker(struct request *request, const struct troupe_fork_hooks *hooks)
{
    const pid_t template = getpid();
    int ended[2], r;

    if (pipe2(ended, O_CLOEXEC) < 0)
        return -errno;
    if (hooks && hooks->before)
        hooks->before(hooks->userdata);
    r = fork_twice();
    (void)close(ended[1]);
    if (r == 1) {
        become_worker(request, template, ended[0]);
        if (hooks && hooks->child)
            hooks->child(hooks->userdata);
        return 1;
    }
    (void)close(ended[0]);
    request->fds[0] = close_fd(request->fds[0]); /* the worker's end ends with the worker */
    if (hooks && hooks->parent)
        hooks->parent(hooks->userdata);
    return r;
}

/* ---- requests ---- */

static void answer(enum template_message kind, const char *reason)
{
    char text[TEMPLATE_REASON_MAX + 2];
    const int n = snprintf(text, sizeof(text), "%c%s", kind, reason);

    (void)send(TEMPLATE_FIRST_FD, text, (size_t)n, MSG_NOSIGNAL);
}

static void drop(int fd)
{
    (void)close(fd);
}

static void close_all(struct request *request)
{
    while (request->n_fds > 0)
        close_fd(request->fds[--request->n_fds]);
}

/* Returns 1, 0 at the end of file, or -errno. */
static int receive(struct request *request)
{
    union scm_control control;
    struct iovec data = {.iov_base = request->text, .iov_len = TEMPLATE_REQUEST_MAX};
    struct msghdr message = SCM_MESSAGE(&data, &control);
    ssize_t n;

    while ((n = recvmsg(TEMPLATE_FIRST_FD, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    if (n <= 0)
        return n < 0 ? -errno : 0;
    request->size = (size_t)n;
    request->text[n] = '\0';
    request->n_fds = scm_take(&message, request->fds, ELEMENTS(request->fds), drop);
    return 1;
}

/* Returns as fork_twice(). */
static int serve(const struct troupe_fork_hooks *hooks)
{
    struct request request = {.n_fds = 0};
    char reason[TEMPLATE_REASON_MAX];
    int r = receive(&request);

    if (r <= 0)
        return r < 0 ? r : -ESHUTDOWN;
    if (!check_threads(reason)) {
        answer(TEMPLATE_UNSAFE, reason);
        r = 0;
    } else {
        r = request.n_fds > 2 && request.n_fds <= TEMPLATE_PASSED_MAX
                ? fork_worker(&request, hooks)
                : -EMFILE; /* descriptors were lost */
        if (r < 0)
            answer(TEMPLATE_FAILED, strerror(-r));
    }
    if (r < 1)
        close_all(&request);
    return r < 0 ? 0 : r;
}

_public_ int troupe_template_run(const struct troupe_fork_hooks *hooks)
{
    const char *variable = getenv(TEMPLATE_VARIABLE);
    char reason[TEMPLATE_REASON_MAX];
    int r = 0;

    if (!variable)
        return 0;
    only_here = strdup(variable + strcspn(variable, " "));
    if (!only_here)
        return -ENOMEM;
    (void)unsetenv(TEMPLATE_VARIABLE);
    for (int fd = TEMPLATE_FIRST_FD; is_own(fd); fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return -EPROTO;
    if (check_threads(reason) && check_children(reason) && check_descriptors(reason)) {
        worker_collapse_heap();
        /* A worker of the same user must not change what later workers are forked from. */
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        answer(TEMPLATE_READY, "");
    } else {
        answer(TEMPLATE_UNSAFE, reason);
    }
    while (r == 0)
        r = serve(hooks);
    return r < 0 ? r : 0;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/filter.h"
#include "supervisor/keeper/sandbox.h"
#include "supervisor/process/call-listener.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <seccomp.h>
#include <sys/syscall.h>

static struct loop *loop;
static struct call_listener listener;
static struct forbidden_call last;
static unsigned n_calls;

static void on_forbidden(struct call_listener *self, const struct forbidden_call *call, bool all)
{
    ck_assert_ptr_eq(self, &listener);
    ck_assert(!all);
    last = *call;
    n_calls++;
}

static bool permits_some(struct call_listener *self, const struct seccomp_data *data)
{
    return data->nr == SYS_sync || data->nr == SYS_getpriority;
}

static void set_up(void)
{
    loop = new_loop();
    listener = (struct call_listener){.fd = -1, .forbidden = on_forbidden, .permits = permits_some};
    n_calls = 0;
}

static void tear_down(void)
{
    call_listener_deinit(&listener);
    loop_free(loop);
}

static int receive_listener(int socket)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char byte;
    struct iovec iovec = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &iovec,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    int fd;

    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0)
        return -1;
    ck_assert_ptr_nonnull(CMSG_FIRSTHDR(&message));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

/* Starts a process with these settings, and listens if it sends a listener. */
static pid_t start(const char *settings, int (*run)(int socket))
{
    struct sandbox sandbox = {0};
    int sockets[2], fd;

    ck_assert_int_eq(filter_compile(settings, &sandbox.filter), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        const int r = sandbox_apply(&sandbox, sockets[1]);

        /* The exec would close it. */
        (void)syscall(SYS_close_range, sockets[1] + 1, ~0u, 0);
        syscall(SYS_exit_group, r < 0 ? 255 : run(sockets[1]));
    }
    close_fd(sockets[1]);
    free(sandbox.filter.code);
    fd = receive_listener(sockets[0]);
    if (fd >= 0)
        ck_assert_int_eq(call_listener_init(&listener, loop, fd), 0);
    close_fd(sockets[0]);
    return pid;
}

static void on_end(void *userdata, uint32_t events)
{
    loop_stop(loop);
}

/* Handles calls until the process has ended. Returns its status. */
static int wait_for(pid_t pid)
{
    const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct loop_watch watch = LOOP_WATCH_NULL;
    int status;

    ck_assert_int_eq(loop_watch_fd(loop, &watch, pidfd, POLLIN, on_end, NULL), 0);
    ck_assert_int_eq(loop_run(loop), 0);
    loop_unwatch(loop, &watch);
    close_fd(pidfd);
    call_listener_deinit(&listener);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static int run_mount(int socket)
{
    return (int)syscall(SYS_mount, NULL, NULL, NULL, -3L, NULL, 0L);
}

static int run_sync(int socket)
{
    return (int)syscall(SYS_sync);
}

/* More than are handled one by one. */
static int run_getpriority_often(int socket)
{
    for (int i = 0; i < 100; i++)
        (void)syscall(SYS_getpriority, 0, 0);
    return run_mount(socket);
}

TEST(permitted_calls_do_not_count_as_forbidden_ones)
{
    const pid_t pid = start("calls 0 ~getpriority ~mount", run_getpriority_often);
    const int status = wait_for(pid);

    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGSYS);
    ck_assert_uint_eq(n_calls, 1);
}

TEST(a_call_that_the_last_supervisor_has_answered_is_not_handled_again)
{
    struct seccomp_notif received = {.id = 1, .data = {.nr = SYS_mount}};
    const pid_t pid = start("calls 0 ~mount ~sync", run_sync);

    listener.received = &received;
    call_listener_resume(&listener);
    ck_assert_uint_eq(received.id, 0);
    ck_assert_int_eq(wait_for(pid), 0);
    ck_assert_uint_eq(n_calls, 0);
}

static int run_error(int socket)
{
    return syscall(SYS_mount, NULL, NULL, NULL, 0, NULL) < 0 ? errno : 0;
}

TEST(without_a_receiver_a_forbidden_call_fails)
{
    pid_t pid = start("calls 0 ~mount", run_error);
    int status;

    call_listener_deinit(&listener);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), ENOSYS);
}

/* What passes the listener on is forbidden again. */
static int run_load(int socket)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = 1, .filter = &allow};

    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG, &program);
}

static int run_load_plainly(int socket)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = 1, .filter = &allow};

    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int run_send(int socket)
{
    const struct msghdr message = {0};

    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_CONFIRM | MSG_DONTROUTE) < 0 ? errno : 0;
}

static int run_send_plainly(int socket)
{
    const struct msghdr message = {0};

    return sendmsg(-1, &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

TEST(what_passes_the_listener_on_is_forbidden_again)
{
    static const char list[] = "calls 0 @system-service ~seccomp ~sendmsg";
    static int (*const runs[])(int socket) = {run_load, run_send, run_load_plainly,
                                              run_send_plainly};

    for (unsigned i = 0; i < ELEMENTS(runs); i++) {
        const int status = wait_for(start(list, runs[i]));

        ck_assert(WIFSIGNALED(status));
        ck_assert_int_eq(WTERMSIG(status), SIGSYS);
        ck_assert_uint_eq(n_calls, i < 2 ? 0 : i - 1); /* the kernel kills for the first two */
    }
}

TEST(allowed_calls_stay_allowed)
{
    ck_assert_int_eq(wait_for(start("calls 0 ~mount", run_load_plainly)), 0);
    ck_assert_int_eq(wait_for(start("calls 0 ~mount", run_send_plainly)), EBADF << 8);
    ck_assert_uint_eq(n_calls, 0);
}

/* Only one filter of a process can have a listener. */
static int run_within(int socket)
{
    struct sandbox sandbox = {0};
    int status, r;

    if (filter_compile("calls 0 ~mount", &sandbox.filter) < 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        r = sandbox_apply(&sandbox, 0);
        syscall(SYS_exit_group, r < 0 ? 255 : run_mount(-1));
    }
    if (waitpid(pid, &status, 0) != pid)
        return 2;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? 0 : 3;
}

TEST(where_another_listener_is_the_kernel_kills)
{
    const int status = wait_for(start("calls 0 ~swapoff", run_within));

    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_uint_eq(n_calls, 0);
}

TEST(calls_are_described_shortly_and_never_too_long)
{
    struct seccomp_data data = {.nr = SYS_ptrace, .arch = seccomp_arch_native(), .args = {16, 1}};
    char text[CALL_TEXT_MAX];

    call_describe(&data, text);
    ck_assert_str_eq(text,
                     "system call ptrace(16, 1, 0, 0, 0, 0) is not allowed (SystemCallFilter=)");
    data = (struct seccomp_data){.nr = 4095, .arch = AUDIT_ARCH_I386};
    for (size_t i = 0; i < 6; i++)
        data.args[i] = UINT64_MAX / 2;
    call_describe(&data, text);
    ck_assert_ptr_nonnull(strstr(text, "system call number 4095(0x7fffffffffffffff, "));
    ck_assert_ptr_nonnull(strstr(text, ") is not allowed (SystemCallArchitectures=)"));
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};

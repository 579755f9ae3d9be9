/* SPDX-License-Identifier: MIT */

/* How the listener of a process arrives with its report. */

#include "shared/base/scm.h"
#include "supervisor/process/process.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <sys/resource.h>
#include <sys/syscall.h>

static struct process_context context;
static struct process process;
static int child_end;
static unsigned n_started;

static void on_started(struct process *p)
{
    ck_assert_ptr_eq(p, &process);
    n_started++;
}

static const struct process_handler HANDLER = {.started = on_started};

static void set_up(void)
{
    int fds[2];

    context = (struct process_context){0};
    context.loop = new_loop();
    ck_assert_int_eq(process_context_init(&context, context.loop, -1), 0);
    process_init(&process, &context,
                 &(struct process_subject){.group = "test", .worker = "test/0", .key = ""}, NULL);
    process_begin(&process, &HANDLER);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    process.report_is_socket = true;
    process.report_fd = fds[0];
    child_end = fds[1];
    n_started = 0;
}

static void tear_down(void)
{
    call_listener_deinit(&process.calls);
    process.report_fd = close_fd(process.report_fd);
    child_end = close_fd(child_end);
    process_deinit(&process);
    process_context_deinit(&context);
    loop_free(context.loop);
}

/* Any descriptor that can be watched. */
static void send_listener(void)
{
    char byte = 0;
    union scm_control control;
    struct iovec iovec = {.iov_base = &byte, .iov_len = sizeof(byte)};
    struct msghdr message = {.msg_iov = &iovec, .msg_iovlen = 1};

    scm_attach(&message, &control, &child_end, 1);
    ck_assert_int_eq(sendmsg(child_end, &message, MSG_NOSIGNAL), 1);
}

/* Returns how many descriptors were allowed. */
static rlim_t allow_descriptors(rlim_t n)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = n;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

/* With a descriptor of the mounts. */
static void send_state(void)
{
    struct spawn_report report = {.state = {.no_new_privileges = true}};
    union scm_control control;
    struct iovec iovec = {.iov_base = &report, .iov_len = sizeof(report)};
    struct msghdr message = {.msg_iov = &iovec, .msg_iovlen = 1};

    scm_attach(&message, &control, &child_end, 1);
    ck_assert_int_eq(sendmsg(child_end, &message, MSG_NOSIGNAL), sizeof(report));
}

TEST(the_mounts_of_a_process_are_held_until_it_is_released)
{
    struct spawn_report report;

    send_state();
    send_listener();
    ck_assert_int_eq(process_read_report(&process, &report), -EAGAIN);
    ck_assert_int_ge(process.mounts_fd, 0);
    ck_assert_int_ge(process.calls.fd, 0);
    ck_assert(process.confined);
    process_release(&process);
    ck_assert_int_eq(process.mounts_fd, -1);
}

TEST(a_process_whose_mounts_are_lost_runs)
{
    struct spawn_report report;

    send_state();
    const rlim_t allowed = allow_descriptors(0);
    const int r = process_read_report(&process, &report);
    (void)allow_descriptors(allowed);
    ck_assert_int_eq(r, -EAGAIN);
    ck_assert(process.confined);
    ck_assert_int_eq(process.mounts_fd, -1);
}

TEST(a_listener_comes_before_the_report)
{
    const struct spawn_report sent = {.error = -ENOENT, .step = SPAWN_EXEC};
    struct spawn_report report;

    send_listener();
    ck_assert_int_eq(process_read_report(&process, &report), -EAGAIN);
    ck_assert_int_ge(process.calls.fd, 0);
    ck_assert_int_eq(write(child_end, &sent, sizeof(sent)), sizeof(sent));
    ck_assert_int_eq(process_read_report(&process, &report), 1);
    ck_assert_int_eq(report.error, -ENOENT);
}

TEST(what_confines_a_process_comes_before_its_listener)
{
    const struct spawn_report sent = {.state = {.no_new_privileges = true, .filtered = true}};
    struct spawn_report report;

    ck_assert_int_eq(write(child_end, &sent, sizeof(sent)), sizeof(sent));
    send_listener();
    ck_assert_int_eq(process_read_report(&process, &report), -EAGAIN);
    ck_assert_int_ge(process.calls.fd, 0);
    ck_assert(process.confined && process.state.no_new_privileges);
    ck_assert(process.state.filtered);
}

/* Its forbidden calls would fail instead of killing it, and nobody would know why. */
TEST(a_process_whose_listener_is_lost_is_killed)
{
    int status;

    process.pid = fork();
    if (process.pid == 0)
        for (;;)
            (void)pause();
    process.pidfd = (int)syscall(SYS_pidfd_open, process.pid, 0);
    ck_assert_int_ge(process.pidfd, 0);
    send_listener();
    const rlim_t allowed = allow_descriptors(0);
    const bool runs = process_confirm(&process);
    (void)allow_descriptors(allowed);
    ck_assert(!runs);
    ck_assert_int_eq(process.error.error, -EMFILE);
    ck_assert_uint_eq(n_started, 0);
    ck_assert_int_eq(process.report_fd, -1);
    ck_assert_int_eq(waitpid(process.pid, &status, 0), process.pid);
    ck_assert(WIFSIGNALED(status));
    process.pidfd = close_fd(process.pidfd);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};

/* SPDX-License-Identifier: MIT */
#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "shared/base/closer.h"
#include "supervisor/loop/loop.h"
#include <check.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

/* A TCP socket that waits an hour when it is closed; the other end is left to the caller. */
static int lingering_socket(int *ret_peer)
{
    static const char data[65536];
    const struct linger linger = {.l_onoff = 1, .l_linger = 3600};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    _cleanup_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, size), 0);
    *ret_peer = accept(listener, NULL, NULL);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
        ;
    return fd;
}

static void wait_until_closed(int fd)
{
    while (fcntl(fd, F_GETFD) >= 0)
        (void)poll(NULL, 0, 1);
}

START_TEST(before_the_thread_runs_it_closes_at_once)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    errno = EPERM;
    closer_close(fd);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
    closer_close(-1);
}
END_TEST

START_TEST(a_close_that_waits_keeps_nobody_and_none_that_follows)
{
    int peers[8], fds[8], last;

    ck_assert_int_eq(closer_start(), 0);
    ck_assert_int_eq(closer_start(), 0);
    for (int i = 0; i < 8; i++)
        fds[i] = lingering_socket(&peers[i]);
    last = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 8; i++)
        closer_close(fds[i]);
    closer_close(last);
    wait_until_closed(last);
    for (int i = 0; i < 8; i++)
        ck_assert_int_lt(fcntl(fds[i], F_GETFD), 0);
}
END_TEST

static void send_fd(int socket, const void *data, size_t size, int fd)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    const struct msghdr message = {.msg_iov = &piece,
                                   .msg_iovlen = 1,
                                   .msg_control = &control,
                                   .msg_controllen = sizeof(control)};

    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    ck_assert_int_eq(sendmsg(socket, &message, 0), (int)size);
}

/* The keeper holds it too, and may close it last. */
START_TEST(what_a_socket_was_sent_is_closed_though_another_holds_the_socket)
{
    int sockets[2], pipes[2], held;
    struct pollfd end;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    ck_assert_int_eq(closer_start(), 0);
    held = fcntl(sockets[0], F_DUPFD_CLOEXEC, 3);
    send_fd(sockets[1], "x", 1, pipes[1]);
    send_fd(sockets[1], "", 0, pipes[1]);
    send_fd(sockets[1], "xx", 2, pipes[1]);
    close_fd(pipes[1]);
    ck_assert_int_eq(shutdown(sockets[0], SHUT_RDWR), 0);
    closer_close_socket(sockets[0]);
    end = (struct pollfd){.fd = pipes[0]};
    ck_assert_int_eq(poll(&end, 1, -1), 1);
    ck_assert_int_eq(end.revents, POLLHUP);
    close_fd(held);
    close_fd(sockets[1]);
    close_fd(pipes[0]);
}
END_TEST

static _Atomic unsigned n_received;

/* Replaces the C library's, and counts. */
ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    atomic_fetch_add(&n_received, 1);
    return syscall(SYS_recvmsg, fd, message, flags);
}

/* The end of a socket looks like messages without bytes, of which there may be hundreds. */
START_TEST(the_end_of_a_socket_is_read_once)
{
    enum {
        MESSAGES = 3
    };
    int sockets[2], held;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    ck_assert_int_eq(closer_start(), 0);
    held = fcntl(sockets[0], F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < MESSAGES; i++)
        ck_assert_int_eq(send(sockets[1], "", 0, 0), 0);
    ck_assert_int_eq(shutdown(sockets[0], SHUT_RDWR), 0);
    closer_close_socket(sockets[0]);
    closer_settle(60000);
    ck_assert_int_lt(fcntl(sockets[0], F_GETFD), 0);
    ck_assert_uint_eq(n_received, MESSAGES + 1);
    close_fd(held);
    close_fd(sockets[1]);
}
END_TEST

/* A stream has no messages without bytes. */
START_TEST(a_stream_is_emptied_to_its_end)
{
    static const char bytes[10000];
    int sockets[2], pipes[2], held;
    struct pollfd end;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    ck_assert_int_eq(closer_start(), 0);
    held = fcntl(sockets[0], F_DUPFD_CLOEXEC, 3);
    ck_assert_int_eq(send(sockets[1], bytes, sizeof(bytes), 0), (int)sizeof(bytes));
    send_fd(sockets[1], "x", 1, pipes[1]);
    close_fd(pipes[1]);
    ck_assert_int_eq(shutdown(sockets[0], SHUT_RDWR), 0);
    closer_close_socket(sockets[0]);
    end = (struct pollfd){.fd = pipes[0]};
    ck_assert_int_eq(poll(&end, 1, -1), 1);
    ck_assert_int_eq(end.revents, POLLHUP);
    close_fd(held);
    close_fd(sockets[1]);
    close_fd(pipes[0]);
}
END_TEST

static struct loop *loop;
static int closed_fd;

static void stop_when_closed(struct loop_deferred *deferred)
{
    if (fcntl(closed_fd, F_GETFD) < 0)
        loop_stop(loop);
    else
        loop_defer(loop, deferred);
}

static void on_never(void *userdata, uint32_t events)
{
    (void)userdata;
    (void)events;
    ck_abort();
}

START_TEST(what_is_passed_on_keeps_nobody_if_it_is_a_socket)
{
    int fds[8], file = open("/dev/null", O_RDONLY | O_CLOEXEC), peers[8];

    ck_assert_int_eq(closer_start(), 0);
    ck_assert_int_eq(closer_close_passed(file), -1);
    ck_assert_int_lt(fcntl(file, F_GETFD), 0);
    for (int i = 0; i < 8; i++)
        fds[i] = lingering_socket(&peers[i]);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(closer_close_passed(fds[i]), -1);
    closer_settle(60000);
    for (int i = 0; i < 8; i++) {
        ck_assert_int_lt(fcntl(fds[i], F_GETFD), 0);
        close_fd(peers[i]);
    }
    ck_assert_int_eq(closer_close_passed(-1), -1);
}
END_TEST

START_TEST(the_loop_shuts_down_at_once_and_closes_when_the_ring_has_let_go)
{
    const struct loop_options options = {0};
    struct loop_watch watch = LOOP_WATCH_NULL;
    struct loop_deferred deferred;
    const char *reason;
    int sockets[2];
    char byte;

    ck_assert_int_eq(loop_new(&loop, &options, &reason), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &watch, sockets[0], POLLIN, on_never, NULL), 0);
    closed_fd = sockets[0];
    loop_unwatch(loop, &watch);
    loop_close(loop, sockets[0]);
    ck_assert_int_ge(fcntl(sockets[0], F_GETFD), 0);
    ck_assert_int_eq(recv(sockets[1], &byte, 1, MSG_DONTWAIT), 0);
    loop_deferred_init(&deferred, stop_when_closed);
    loop_defer(loop, &deferred);
    ck_assert_int_eq(loop_run(loop), 0);
    closed_fd = sockets[1];
    loop_close(loop, sockets[1]);
    loop_free(loop);
    ck_assert_int_lt(fcntl(sockets[1], F_GETFD), 0);
}
END_TEST

static bool is_mapped(void *start)
{
    return msync(start, PAGE, MS_ASYNC) == 0;
}

static void *page;

static void stop_when_unmapped(struct loop_deferred *deferred)
{
    if (!is_mapped(page))
        loop_stop(loop);
    else
        loop_defer(loop, deferred);
}

static void *map_page(void)
{
    void *start = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(start, MAP_FAILED);
    return start;
}

START_TEST(the_loop_unmaps_after_more_urgent_work)
{
    const struct loop_options options = {0};
    struct loop_deferred deferred;
    const char *reason;
    usec_t began;

    page = map_page();
    ck_assert_int_eq(loop_new(&loop, &options, &reason), 0);
    began = loop_now(loop);
    loop_unmap(loop, NULL, PAGE);
    loop_unmap(loop, page, PAGE);
    loop_deferred_init(&deferred, stop_when_unmapped);
    loop_defer(loop, &deferred);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_ge(clock_now() - began, USEC_PER_MSEC);
    page = map_page();
    loop_unmap(loop, page, PAGE);
    ck_assert(is_mapped(page));
    loop_free(loop);
    ck_assert(!is_mapped(page));
    ck_assert_int_ge(fcntl(0, F_GETFD), 0); /* NULL is no descriptor */
}
END_TEST

static void on_hangup(void *userdata, uint32_t events)
{
    (void)userdata;
    (void)events;
    loop_stop(loop);
}

START_TEST(the_loop_closes_after_more_urgent_work_and_wakes_up_for_it)
{
    const struct loop_options options = {0};
    struct loop_watch watch = LOOP_WATCH_NULL;
    const char *reason;
    int fds[2];
    usec_t began;

    ck_assert_int_eq(loop_new(&loop, &options, &reason), 0);
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &watch, fds[0], POLLIN, on_hangup, NULL), 0);
    began = loop_now(loop);
    loop_close(loop, fds[1]);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_ge(clock_now() - began, USEC_PER_MSEC);
    loop_unwatch(loop, &watch);
    close_fd(fds[0]);
    loop_free(loop);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("closer");
    TCase *tcase = tcase_create("closer");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, before_the_thread_runs_it_closes_at_once);
    tcase_add_test(tcase, a_close_that_waits_keeps_nobody_and_none_that_follows);
    tcase_add_test(tcase, what_a_socket_was_sent_is_closed_though_another_holds_the_socket);
    tcase_add_test(tcase, the_end_of_a_socket_is_read_once);
    tcase_add_test(tcase, a_stream_is_emptied_to_its_end);
    tcase_add_test(tcase, what_is_passed_on_keeps_nobody_if_it_is_a_socket);
    tcase_add_test(tcase, the_loop_shuts_down_at_once_and_closes_when_the_ring_has_let_go);
    tcase_add_test(tcase, the_loop_unmaps_after_more_urgent_work);
    tcase_add_test(tcase, the_loop_closes_after_more_urgent_work_and_wakes_up_for_it);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

/* SPDX-License-Identifier: MIT */
#include "shared/base/uapi.h"
#include "shared/protocol/payload-wire.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/taker.h"
#include "supervisor/process/notify-server.h"
#include "tests/unit/suite.h"
#include <ctype.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define OWNER 1

static struct loop *loop;

static void start_if(int wanted)
{
    const char *reason;

    if (!wanted)
        return;
    ck_assert_int_eq(loop_new(&loop, &(struct loop_options){0}, &reason), 0);
    ck_assert_int_eq(taker_start(), 0);
    taker_set_loop(loop);
}

static void stop(void)
{
    taker_set_loop(NULL);
    loop_free(loop);
    taker_stop();
}

static void on_answered(struct taker_receipt *receipt)
{
    loop_stop(loop);
}

static int receive(int socket, uint64_t owner, uint64_t *ret_serial, int *ret_fd)
{
    struct taker_receipt receipt;

    taker_receipt_init(&receipt, on_answered);
    int r = taker_receive(&receipt, socket, owner, ret_serial, ret_fd);
    if (r != TAKER_E_WAIT)
        return r;
    ck_assert_int_eq(loop_run(loop), 0);
    return taker_receive(&receipt, socket, owner, ret_serial, ret_fd);
}

static int discard(int socket, uint64_t owner)
{
    struct taker_receipt receipt;

    taker_receipt_init(&receipt, on_answered);
    int r = taker_discard(&receipt, socket, owner);
    if (r != TAKER_E_WAIT)
        return r;
    ck_assert_int_eq(loop_run(loop), 0);
    return taker_discard(&receipt, socket, owner);
}

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
TEST(what_a_socket_was_sent_is_closed_though_another_holds_the_socket, .n = 2)
{
    int sockets[2], pipes[2], held;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    start_if(_i);
    held = fcntl(sockets[0], F_DUPFD_CLOEXEC, 3);
    send_fd(sockets[1], "x", 1, pipes[1]);
    send_fd(sockets[1], "", 0, pipes[1]);
    send_fd(sockets[1], "xx", 2, pipes[1]);
    close_fd(pipes[1]);
    ck_assert_int_eq(shutdown(sockets[0], SHUT_RDWR), 0);
    taker_close_socket(sockets[0], OWNER);
    struct pollfd end = (struct pollfd){.fd = pipes[0]};
    ck_assert_int_eq(poll(&end, 1, -1), 1);
    ck_assert_int_eq(end.revents, POLLHUP);
    close_fd(held);
    close_fd(sockets[1]);
    close_fd(pipes[0]);
}

static _Atomic unsigned n_received;

/* Replaces the C library's, and counts. */
ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    atomic_fetch_add(&n_received, 1);
    return syscall(SYS_recvmsg, fd, message, flags);
}

/* The end of a socket looks like messages without bytes, of which there may be hundreds. */
TEST(the_end_of_a_socket_is_read_once)
{
    enum {
        MESSAGES = 3
    };
    int sockets[2], held;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    held = fcntl(sockets[0], F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < MESSAGES; i++)
        ck_assert_int_eq(send(sockets[1], "", 0, 0), 0);
    ck_assert_int_eq(shutdown(sockets[0], SHUT_RDWR), 0);
    taker_close_socket(sockets[0], OWNER);
    ck_assert_int_lt(fcntl(sockets[0], F_GETFD), 0);
    ck_assert_uint_eq(n_received, MESSAGES + 2); /* and the first look */
    close_fd(held);
    close_fd(sockets[1]);
}

/* A stream has no messages without bytes. */
TEST(a_stream_is_emptied_to_its_end, .n = 2)
{
    static const char bytes[10000];
    int sockets[2], pipes[2], held;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    start_if(_i);
    held = fcntl(sockets[0], F_DUPFD_CLOEXEC, 3);
    ck_assert_int_eq(send(sockets[1], bytes, sizeof(bytes), 0), (int)sizeof(bytes));
    send_fd(sockets[1], "x", 1, pipes[1]);
    close_fd(pipes[1]);
    ck_assert_int_eq(shutdown(sockets[0], SHUT_RDWR), 0);
    taker_close_socket(sockets[0], OWNER);
    struct pollfd end = (struct pollfd){.fd = pipes[0]};
    ck_assert_int_eq(poll(&end, 1, -1), 1);
    ck_assert_int_eq(end.revents, POLLHUP);
    close_fd(held);
    close_fd(sockets[1]);
    close_fd(pipes[0]);
}

static void send_serial(int socket, uint64_t serial, int fd)
{
    ck_assert_int_eq(payload_send_fd(socket, fd, serial), 0);
}

static void send_memfd(int socket, uint64_t serial)
{
    _cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    ck_assert_int_ge(fd, 0);
    send_serial(socket, serial, fd);
}

static void receive_memfd(int socket, uint64_t serial)
{
    uint64_t received;
    int fd;

    ck_assert_int_eq(receive(socket, OWNER, &received, &fd), 0);
    ck_assert_uint_eq(received, serial);
    ck_assert_int_ge(fcntl(fd, F_GET_SEALS), 0);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close_fd(fd);
}

static void make_sockets(int sockets[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
}

TEST(memfds_are_received_in_order, .n = 2)
{
    int sockets[2];

    make_sockets(sockets);
    start_if(_i);
    for (uint64_t i = 1; i < 4; i++)
        send_memfd(sockets[1], i);
    for (uint64_t i = 1; i < 4; i++)
        receive_memfd(sockets[0], i);
    stop();
}

TEST(another_descriptor_is_refused_and_closed)
{
    uint64_t serial;
    int sockets[2], pipes[2], fd;

    make_sockets(sockets);
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    start_if(1);
    send_serial(sockets[1], 1, pipes[1]);
    send_memfd(sockets[1], 2);
    close_fd(pipes[1]);
    ck_assert_int_eq(receive(sockets[0], OWNER, &serial, &fd), -EPROTO);
    struct pollfd end = (struct pollfd){.fd = pipes[0]};
    ck_assert_int_eq(poll(&end, 1, -1), 1);
    ck_assert_int_eq(end.revents, POLLHUP);
    receive_memfd(sockets[0], 2);
    ck_assert_int_eq(receive(sockets[0], OWNER, &serial, &fd), -EPROTO); /* nothing there */
    stop();
}

static int lock[2], locked[2];
static _Atomic pid_t holder;

/* splice(2) from an empty socket waits with the pipe locked. */
static void *hold_lock(void *unused)
{
    (void)signal(SIGPIPE, SIG_IGN); /* the taker may have been killed, and with it the reader */
    atomic_store(&holder, gettid());
    (void)splice(lock[0], NULL, locked[1], NULL, 4096, 0);
    return unused;
}

static bool waits_in_splice(void)
{
    char path[64], text[16] = "";
    _cleanup_close_ int fd = -1;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)atomic_load(&holder));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && isdigit(text[0]) &&
           atoi(text) == SYS_splice;
}

/* Makes a pipe whose last close waits, and leaves its read end to the caller. */
static pthread_t lock_pipe(void)
{
    pthread_t thread;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, lock), 0);
    ck_assert_int_eq(pipe2(locked, O_CLOEXEC), 0);
    atomic_store(&holder, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, hold_lock, NULL), 0);
    /* FIONREAD waits for the lock, so look at the thread from outside. */
    while (!waits_in_splice())
        (void)sched_yield();
    return thread;
}

static void unlock_pipe(pthread_t thread)
{
    ck_assert_int_eq((int)write(lock[1], "x", 1), 1);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    close_fd(locked[1]);
}

TEST(a_close_that_waits_keeps_nobody)
{
    uint64_t serial;
    int sockets[2], held, fd;

    make_sockets(sockets);
    start_if(1);
    pthread_t thread = lock_pipe();
    send_serial(sockets[1], 1, locked[0]);
    close_fd(locked[0]);
    send_memfd(sockets[1], 2);
    ck_assert_int_eq(receive(sockets[0], OWNER, &serial, &fd), -EPROTO);
    receive_memfd(sockets[0], 2);
    unlock_pipe(thread);

    thread = lock_pipe();
    send_serial(sockets[1], 3, locked[0]);
    send_memfd(sockets[1], 4);
    close_fd(locked[0]);
    ck_assert_int_eq(discard(sockets[0], OWNER), 0);
    ck_assert_int_eq(discard(sockets[0], OWNER), 0);
    ck_assert_int_eq(discard(sockets[0], OWNER), -EAGAIN);
    unlock_pipe(thread);

    thread = lock_pipe();
    send_serial(sockets[1], 5, locked[0]);
    close_fd(locked[0]);
    held = fcntl(sockets[0], F_DUPFD_CLOEXEC, 3);
    ck_assert_int_eq(shutdown(sockets[0], SHUT_RDWR), 0);
    taker_close_socket(sockets[0], OWNER);
    ck_assert_int_lt(fcntl(sockets[0], F_GETFD), 0);
    close_fd(held); /* the taker has it, too */
    stop();
    unlock_pipe(thread);
}

/* Makes a pipe, and closes a socket in which its write end was sent. */
static void close_with(uint64_t owner, int pipes[static 2])
{
    int sockets[2];

    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    make_sockets(sockets);
    send_serial(sockets[1], 1, pipes[1]);
    close_fd(pipes[1]);
    close_fd(sockets[1]);
    ck_assert_int_eq(shutdown(sockets[0], SHUT_RDWR), 0);
    taker_close_socket(sockets[0], owner);
}

TEST(who_keeps_takers_stuck_gets_no_other)
{
    enum {
        STUCK = 8
    };
    int sockets[2], saved[STUCK][2], own[2], others[2], fd;
    pthread_t threads[STUCK];
    uint64_t serial;

    make_sockets(sockets);
    start_if(1);
    for (int i = 0; i < STUCK; i++) {
        threads[i] = lock_pipe();
        saved[i][0] = lock[1];
        saved[i][1] = locked[1];
        send_serial(sockets[1], 1, locked[0]);
        close_fd(locked[0]);
        ck_assert_int_eq(receive(sockets[0], OWNER, &serial, &fd), -EPROTO);
    }
    send_memfd(sockets[1], 2);
    receive_memfd(sockets[0], 2);
    send_memfd(sockets[1], 3);
    ck_assert_int_eq(receive(sockets[0], OWNER, &serial, &fd), -EPROTO);
    ck_assert_int_eq(discard(sockets[0], OWNER), -EUSERS);
    ck_assert_int_eq(receive(sockets[0], OWNER + 1, &serial, &fd), 0);
    ck_assert_uint_eq(serial, 3);
    close_fd(fd);
    close_with(OWNER, own);
    close_with(OWNER + 1, others);
    ck_assert_int_eq(poll(&(struct pollfd){.fd = others[0]}, 1, -1), 1);
    ck_assert_int_eq(poll(&(struct pollfd){.fd = own[0]}, 1, 0), 0);
    for (int i = 0; i < STUCK; i++) {
        lock[1] = saved[i][0];
        locked[1] = saved[i][1];
        unlock_pipe(threads[i]);
    }
    while (poll(&(struct pollfd){.fd = own[0]}, 1, 10) == 0)
        taker_close_socket(-1, 0); /* as for any other */
    send_memfd(sockets[1], 4);
    while (receive(sockets[0], OWNER, &serial, &fd) < 0)
        (void)poll(NULL, 0, 10);
    ck_assert_uint_eq(serial, 4);
    close_fd(fd);
    stop();
}

static void on_notify(void *userdata, const struct notify_message *notify)
{
}

/* A socket of whose queue a taker holds only some at a time (net.unix.max_dgram_qlen). */
TEST(sockets_that_no_taker_can_drain_yet_are_drained_later)
{
    enum {
        SOCKETS = 1000
    };
    const struct notify_senders senders = {.owner = getuid()};
    const uint64_t owner = taker_owner_of_user(senders.owner);
    struct notify_server server;
    int sockets[2], pipes[2];
    pthread_t thread;
    struct pollfd end;

    start_if(1);
    thread = lock_pipe();
    make_sockets(sockets);
    send_serial(sockets[1], 1, locked[0]);
    close_fd(locked[0]);
    ck_assert_int_eq(shutdown(sockets[0], SHUT_RDWR), 0);
    taker_close_socket(sockets[0], owner);
    close_fd(sockets[1]);
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    for (int i = 0; i < SOCKETS; i++) {
        make_sockets(sockets);
        send_serial(sockets[1], 1, pipes[1]);
        close_fd(sockets[1]);
        ck_assert_int_eq(shutdown(sockets[0], SHUT_RDWR), 0);
        taker_close_socket(sockets[0], owner);
    }
    close_fd(pipes[1]);
    ck_assert(taker_is_full(owner));
    ck_assert(!taker_is_full(owner + 1));
    ck_assert_int_eq(
        notify_server_init(&server, loop, "taker-notify.sock", &senders, on_notify, NULL), -EUSERS);
    unlock_pipe(thread);
    end = (struct pollfd){.fd = pipes[0]};
    while (poll(&end, 1, 10) == 0)
        taker_close_socket(-1, 0); /* as for any other */
    ck_assert_int_eq(end.revents, POLLHUP);
    ck_assert(!taker_is_full(owner));
    stop();
}

TEST(the_descriptor_of_a_sender_is_closed)
{
    int sockets[2], next;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets), 0);
    ck_assert_int_eq(setsockopt(sockets[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)), 0);
    if (setsockopt(sockets[0], SOL_SOCKET, TROUPE_SO_PASSPIDFD, &(int){1}, sizeof(int)) < 0)
        return;
    next = dup(sockets[0]);
    close_fd(next);
    send_fd(sockets[1], "READY=1", 7, sockets[1]);
    ck_assert_int_eq(discard(sockets[0], OWNER), 0);
    ck_assert_int_eq(dup(sockets[0]), next);
    ck_assert_int_eq(dup(sockets[0]), next + 1);
}

TEST(a_taker_that_was_killed_is_replaced)
{
    int sockets[2];
    siginfo_t ended;

    make_sockets(sockets);
    start_if(1);
    send_memfd(sockets[1], 1);
    receive_memfd(sockets[0], 1);
    (void)signal(SIGTERM, SIG_IGN);
    ck_assert_int_eq(kill(0, SIGTERM), 0); /* all processes of this test */
    ck_assert_int_eq(waitid(P_ALL, 0, &ended, WEXITED), 0);
    ck_assert_int_eq(waitid(P_ALL, 0, &ended, WEXITED), 0);
    send_memfd(sockets[1], 2);
    receive_memfd(sockets[0], 2);
    stop();
}

static void signal_takers(int signal)
{
    char path[64], pids[256];

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "re");
    ck_assert_ptr_nonnull(children);
    ck_assert_ptr_nonnull(fgets(pids, sizeof(pids), children));
    (void)fclose(children);
    for (char *at = pids; *at != '\0' && *at != '\n'; at++)
        ck_assert_int_eq(kill((pid_t)strtol(at, &at, 10), signal), 0);
}

TEST(requests_behind_one_whose_taker_was_killed_are_answered)
{
    struct taker_receipt first, second;
    int sockets[2], others[2], fd;
    uint64_t serial;

    make_sockets(sockets);
    make_sockets(others);
    start_if(1);
    send_memfd(sockets[1], 1);
    send_memfd(others[1], 2);
    signal_takers(SIGSTOP);
    taker_receipt_init(&first, on_answered);
    taker_receipt_init(&second, on_answered);
    ck_assert_int_eq(taker_receive(&first, sockets[0], OWNER, &serial, &fd), TAKER_E_WAIT);
    ck_assert_int_eq(taker_receive(&second, others[0], OWNER, &serial, &fd), TAKER_E_WAIT);
    ck_assert(taker_is_asked());
    signal_takers(SIGKILL);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(taker_receive(&first, sockets[0], OWNER, &serial, &fd), -EMFILE);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_int_eq(taker_receive(&second, others[0], OWNER, &serial, &fd), 0);
    ck_assert_uint_eq(serial, 2);
    close_fd(fd);
    receive_memfd(sockets[0], 1); /* still there */
    stop();
}

TEST(a_cancelled_request_is_not_answered)
{
    struct taker_receipt receipt;
    int sockets[2], fd;
    uint64_t serial;

    make_sockets(sockets);
    start_if(1);
    send_memfd(sockets[1], 1);
    send_memfd(sockets[1], 2);
    taker_receipt_init(&receipt, NULL);
    ck_assert_int_eq(taker_receive(&receipt, sockets[0], OWNER, &serial, &fd), TAKER_E_WAIT);
    taker_cancel(&receipt);
    receive_memfd(sockets[0], 2);
    ck_assert(!taker_is_asked());
    stop();
}

const struct suite suite = {.argument = TAKER_ARGUMENT, .with_argument = taker_run};

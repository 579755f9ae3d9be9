/* SPDX-License-Identifier: MIT */

/* The supervisor's side of the takers; taker-process.c is the other side. */

#include "supervisor/loop/taker.h"

#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "shared/base/scm.h"
#include "shared/base/spawn-self.h"
#include "shared/protocol/payload-wire.h"
#include "supervisor/loop/taker-request.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A taker whose close takes longer is replaced. */
#define STUCK (5 * USEC_PER_SEC)
/* How long to wait for an answer. The taker answers without waiting for anything, so only a very
 * busy machine takes long. */
#define ANSWER_MSEC 3000
/* How many abandoned takers may not have ended yet, of one owner and in total. */
#define SPENT_OF_OWNER_MAX 8
#define SPENT_MAX          128
/* How many requests a taker may have at a time. */
#define PENDING_MAX 64
/* How many sockets that could not be drained are tried again for each that is closed. */
#define LATER_TRIED 8

/* One taker per kind of request: one that is stuck must not keep the others from answering. */
enum role {
    ROLE_RECEIVE, /* payloads */
    ROLE_DISCARD, /* notifications with descriptors */
    ROLE_DRAIN,   /* asynchronous */
    N_ROLES,
};

struct taker {
    int fd, pidfd;
    unsigned pending; /* requests whose descriptors are not all closed */
    usec_t since;     /* when the first of them was made, or the last of them was completed */
    unsigned first;   /* the oldest of them, in `owners` */
    uint64_t owners[PENDING_MAX];
};

struct later {
    int fd;
    uint64_t owner;
};

static struct {
    bool started;
    struct taker takers[N_ROLES];
    struct {
        int pidfd; /* not its socket, which it may close before others */
        uint64_t owner;
    } spent[SPENT_MAX];
    unsigned n_spent;
    struct later *later; /* sockets that no taker could drain yet */
    size_t n_later, allocated, next_later;
} state;

static int spawn(int socket, pid_t *ret)
{
    char *const argv[] = {(char[]){"trouped-taker"}, (char[]){TAKER_ARGUMENT}, NULL};

    return spawn_self(argv, &(const struct spawn_self_fd){socket, STDIN_FILENO}, 1, ret);
}

static int start(struct taker *taker)
{
    _cleanup_close_ int ours = -1, theirs = -1;
    int fds[2], pidfd, r;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    ours = fds[0];
    theirs = fds[1];
    r = spawn(theirs, &pid);
    if (r < 0)
        return r;
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return -errno; /* it ends with its socket */
    *taker = (struct taker){.fd = TAKE_FD(ours), .pidfd = pidfd};
    return 0;
}

static bool has_ended(int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};

    return poll(&end, 1, 0) > 0;
}

/* Forgets abandoned takers that have ended. */
static void look_at_spent(void)
{
    for (unsigned i = 0; i < state.n_spent;) {
        if (!has_ended(state.spent[i].pidfd)) {
            i++;
            continue;
        }
        close_fd(state.spent[i].pidfd);
        state.spent[i] = state.spent[--state.n_spent];
    }
}

/* Kills the taker without waiting for its end: a close may keep it alive. */
static void give_up(struct taker *taker)
{
    if (taker->fd < 0)
        return;
    (void)syscall(SYS_pidfd_send_signal, taker->pidfd, SIGKILL, NULL, 0);
    taker->fd = close_fd(taker->fd);
    state.spent[state.n_spent].owner = taker->pending > 0 ? taker->owners[taker->first] : 0;
    state.spent[state.n_spent++].pidfd = TAKE_FD(taker->pidfd);
}

static unsigned count_spent(uint64_t owner)
{
    unsigned n = 0;

    for (unsigned i = 0; i < state.n_spent; i++)
        n += state.spent[i].owner == owner;
    return n;
}

/* Returns whether too many takers hang because of the owner for it to get a further one. */
static bool has_spent_all(uint64_t owner)
{
    if (owner == 0 || count_spent(owner) < SPENT_OF_OWNER_MAX)
        return false;
    look_at_spent();
    return count_spent(owner) >= SPENT_OF_OWNER_MAX;
}

static int replace(struct taker *taker)
{
    int r;

    look_at_spent();
    if (state.n_spent == SPENT_MAX)
        return -EMFILE;
    give_up(taker);
    r = start(taker);
    if (r < 0)
        log_error("cannot start a process that receives descriptors: %s", strerror(-r));
    return r;
}

static void note_answer(struct taker *taker, const struct taker_answer *answer)
{
    taker->since = clock_now();
    if (!answer->is_done)
        return;
    taker->pending--;
    taker->first = (taker->first + 1) % PENDING_MAX;
}

/* Reads the reports of requests whose descriptors are closed. */
static void look_at(struct taker *taker)
{
    struct taker_answer answer;

    while (taker->fd >= 0 && taker->pending > 0 &&
           recv(taker->fd, &answer, sizeof(answer), MSG_DONTWAIT) == (ssize_t)sizeof(answer))
        note_answer(taker, &answer);
}

static int send_request(struct taker *taker, enum taker_kind kind, int fd, uint64_t owner)
{
    const struct taker_request request = {.kind = kind};
    struct iovec part = {.iov_base = (void *)(uintptr_t)&request, .iov_len = sizeof(request)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union scm_control control;

    if (taker->pending == PENDING_MAX)
        return -EAGAIN;
    scm_attach(&message, &control, &fd, 1);
    if (sendmsg(taker->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return -errno;
    taker->owners[(taker->first + taker->pending) % PENDING_MAX] = owner;
    if (taker->pending++ == 0)
        taker->since = clock_now();
    return 0;
}

/* Sends the request to the taker, or to a new one if that one is not `usable` or has ended. */
static int send_or_replace(struct taker *taker, bool usable, enum taker_kind kind, int fd,
                           uint64_t owner)
{
    int r = usable ? send_request(taker, kind, fd, owner) : -EPIPE;

    if (r != -EPIPE && r != -ECONNRESET)
        return r;
    r = replace(taker);
    return r < 0 ? r : send_request(taker, kind, fd, owner);
}

/* Asks a taker that closes nothing, so that it answers immediately. */
static int ask(enum role role, enum taker_kind kind, int fd, uint64_t owner)
{
    struct taker *taker = &state.takers[role];

    if (has_spent_all(owner))
        return -EUSERS;
    look_at(taker);
    return send_or_replace(taker, taker->fd >= 0 && taker->pending == 0, kind, fd, owner);
}

/* Returns the answer's result, or -EMFILE without an answer. */
static int await_answer(enum role role, struct taker_answer *ret, int *ret_fd)
{
    struct taker *taker = &state.takers[role];
    struct pollfd poller = {.fd = taker->fd, .events = POLLIN};
    struct iovec part = {.iov_base = ret, .iov_len = sizeof(*ret)};
    union scm_control control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};

    *ret_fd = -1;
    if (poll(&poller, 1, ANSWER_MSEC) <= 0 ||
        recvmsg(taker->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(*ret)) {
        (void)replace(taker);
        return -EMFILE;
    }
    note_answer(taker, ret);
    (void)scm_take(&message, ret_fd, 1, payload_drop_fd);
    if (ret->result == 0 && message.msg_flags & MSG_CTRUNC)
        return -EMFILE;
    return ret->result;
}

int taker_receive(int socket, uint64_t owner, uint64_t *ret_serial, int *ret_fd)
{
    struct taker_answer answer;
    int r;

    if (!state.started)
        return payload_receive_any(socket, ret_serial, payload_drop_fd, ret_fd);
    r = fault_inject("receive");
    if (r == 0)
        r = ask(ROLE_RECEIVE, TAKER_RECEIVE, socket, owner);
    if (r == 0)
        r = await_answer(ROLE_RECEIVE, &answer, ret_fd);
    else if (r != -ENOMEM)
        r = r == -ETOOMANYREFS || r == -EUSERS ? -EPROTO : -EMFILE;
    if (r == 0)
        *ret_serial = answer.serial;
    return r;
}

int taker_discard(int socket, uint64_t owner)
{
    struct taker_answer answer;
    int fd, r;

    if (!state.started)
        return taker_drop_message(socket);
    r = ask(ROLE_DISCARD, TAKER_DISCARD, socket, owner);
    return r == 0 ? await_answer(ROLE_DISCARD, &answer, &fd) : r;
}

/* Replaces a taker that hangs in a close. Half of the abandoned takers stay reserved for requests
 * that cannot wait, since a socket can be drained later. */
static int replace_stuck(struct taker *taker)
{
    look_at_spent();
    return state.n_spent >= SPENT_MAX / 2 ? -EMFILE : replace(taker);
}

/* Passes the socket to the taker, so that the close in this process is not the last one. */
static int drain_there(int fd, uint64_t owner)
{
    struct taker *taker = &state.takers[ROLE_DRAIN];

    if (has_spent_all(owner))
        return -EUSERS;
    look_at(taker);
    if (taker->pending > 0 && usec_sub(clock_now(), taker->since) > STUCK &&
        replace_stuck(taker) == 0)
        log_warning("a descriptor from a worker or client does not close; "
                    "another process closes the following ones");
    return send_or_replace(taker, taker->fd >= 0, TAKER_DRAIN, fd, owner);
}

/* Keeps a socket whose taker is stuck or has a full queue, or whose owner gets no taker. */
static void keep_for_later(int fd, uint64_t owner)
{
    if (state.n_later == state.allocated) {
        const size_t n = state.allocated > 0 ? 2 * state.allocated : 16;
        struct later *later = reallocarray(state.later, n, sizeof(*later));

        if (!later)
            return; /* it leaks rather than block the loop */
        state.later = later;
        state.allocated = n;
    }
    state.later[state.n_later++] = (struct later){fd, owner};
}

/* Tries some of them in turn: those of one owner must not keep the others. */
static void drain_later(void)
{
    for (unsigned i = 0; i < LATER_TRIED && state.n_later > 0; i++) {
        struct later *later = &state.later[state.next_later++ % state.n_later];
        const int r = drain_there(later->fd, later->owner);

        if (r == 0) {
            close_fd(later->fd);
            *later = state.later[--state.n_later];
        } else if (r != -EUSERS)
            return;
    }
}

/* Only the sender's credentials distinguish a message without bytes from the end of the socket. */
static bool is_empty(int fd)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    char byte;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (!scm_is_stream(fd)) {
        if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) < 0)
            return true; /* no socket */
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    return scm_receive(fd, &message, MSG_PEEK | MSG_DONTWAIT) <= 0 && message.msg_controllen == 0;
}

void taker_close_socket(int fd, uint64_t owner)
{
    drain_later();
    if (fd < 0)
        return;
    look_at_spent();
    if (is_empty(fd))
        (void)close_fd(fd);
    else if (!state.started) {
        taker_drain(fd);
        (void)close_fd(fd);
    } else if (drain_there(fd, owner) == 0)
        (void)close_fd(fd);
    else
        keep_for_later(fd, owner);
}

int taker_start(void)
{
    int r = 0;

    for (size_t i = 0; i < N_ROLES; i++)
        state.takers[i] = (struct taker){.fd = -1, .pidfd = -1};
    for (size_t i = 0; i < N_ROLES && r == 0; i++)
        if (i != ROLE_DISCARD) /* started when it is needed, which is rare */
            r = start(&state.takers[i]);
    state.started = r == 0;
    return r;
}

void taker_stop(void)
{
    for (size_t i = 0; i < N_ROLES && state.started; i++) {
        state.takers[i].fd = close_fd(state.takers[i].fd);
        state.takers[i].pidfd = close_fd(state.takers[i].pidfd);
    }
    while (state.n_later > 0)
        close_fd(state.later[--state.n_later].fd);
    free(TAKE_PTR(state.later));
    state.allocated = 0;
    state.started = false;
}

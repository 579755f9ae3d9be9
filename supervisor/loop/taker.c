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
#include "supervisor/loop/loop.h"
#include "supervisor/loop/taker-request.h"
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A taker whose close or answer takes longer is replaced. It answers without waiting for anything,
 * so only a very busy machine takes long. */
#define STUCK (5 * USEC_PER_SEC)
/* How many abandoned takers may not have ended yet, of one owner and in total. */
#define SPENT_OF_OWNER_MAX 8
#define SPENT_MAX          128
/* How many requests a taker may have at a time. */
#define PENDING_MAX 64
/* How many sockets that could not be drained are tried again for each that is closed. */
#define LATER_TRIED 8
/* How many such sockets an owner may have before it gets no further sockets. */
#define LATER_OF_OWNER_MAX 16

/* One taker per kind of request: one that is stuck must not keep the others from answering. */
enum role {
    ROLE_RECEIVE, /* payloads */
    ROLE_DISCARD, /* notifications with descriptors */
    ROLE_DRAIN,   /* without an answer */
    ROLE_HOLD,    /* sockets of an owner who has too many that cannot be closed */
    N_ROLES,
};

struct taker {
    int fd, pidfd;
    unsigned pending; /* requests whose descriptors are not all closed */
    usec_t since;     /* when the first of them was made, or the last of them was completed */
    unsigned first;   /* the oldest of them, in `owners` */
    uint64_t owners[PENDING_MAX];

    /* One request at a time is sent, and the taker must be idle: a close may hang. */
    bool asked;
    struct taker_receipt *current; /* the request; NULL = it was cancelled */
    struct list waiting;           /* the next ones */
    struct loop_watch watch;
    struct timer timeout;
};

struct later {
    int fd;
    uint64_t owner;
};

static struct {
    bool started;
    struct loop *loop;
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

static void on_answer(void *userdata, uint32_t events);

static void watch(struct taker *taker)
{
    if (state.loop && taker->fd >= 0 && taker < &state.takers[ROLE_DRAIN] &&
        loop_watch_fd(state.loop, &taker->watch, taker->fd, POLLIN, on_answer, taker) < 0)
        log_error("out of memory: the answers of a process that receives descriptors come late");
}

static void unwatch(struct taker *taker)
{
    if (state.loop)
        loop_unwatch(state.loop, &taker->watch);
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
    taker->fd = TAKE_FD(ours);
    taker->pidfd = pidfd;
    taker->pending = 0;
    watch(taker);
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
    unwatch(taker);
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
    const struct iovec data = {.iov_base = (void *)(uintptr_t)&request, .iov_len = sizeof(request)};

    if (taker->pending == PENDING_MAX)
        return -EAGAIN;
    if (scm_send(taker->fd, data, &fd, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
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
static int ask(struct taker *taker, const struct taker_receipt *receipt)
{
    const enum taker_kind kind =
        taker == &state.takers[ROLE_RECEIVE] ? TAKER_RECEIVE : TAKER_DISCARD;

    if (has_spent_all(receipt->owner))
        return -EUSERS;
    look_at(taker);
    return send_or_replace(taker, taker->fd >= 0 && taker->pending == 0, kind, receipt->socket,
                           receipt->owner);
}

/* Ends the current request with `answer`. Takes over `fd`. */
static void deliver(struct taker *taker, const struct taker_answer *answer, int fd)
{
    struct taker_receipt *receipt = taker->current;
    bool waits;

    taker->asked = false;
    taker->current = NULL;
    timer_disarm(loop_timers(state.loop), &taker->timeout);
    if (!receipt) {
        (void)close_fd(fd);
        return;
    }
    waits = receipt->state == TAKER_WAITS;
    receipt->state = TAKER_ANSWERED;
    receipt->result = answer->result;
    receipt->serial = answer->serial;
    receipt->fd = fd;
    if (waits)
        receipt->answered(receipt);
}

/* Sends the next request, and ends those that cannot be sent. */
static void ask_next(struct taker *taker)
{
    struct taker_answer answer = {0};

    while (!taker->asked && !list_empty(&taker->waiting)) {
        taker->current = list_first_entry(&taker->waiting, struct taker_receipt, link);
        list_unlink(&taker->current->link);
        taker->asked = true;
        answer.result = ask(taker, taker->current);
        if (answer.result == 0)
            timer_arm(loop_timers(state.loop), &taker->timeout,
                      usec_add(loop_now(state.loop), STUCK));
        else
            deliver(taker, &answer, -1);
    }
}

static void on_timeout(struct timer *timer, usec_t now)
{
    struct taker *taker = list_entry(timer, struct taker, timeout);

    (void)replace(taker);
    deliver(taker, &(struct taker_answer){.result = -EMFILE}, -1);
    ask_next(taker);
}

/* The taker was killed, or its socket is of no use. It is replaced when it is needed. */
static void on_loss(struct taker *taker)
{
    unwatch(taker);
    if (taker->asked)
        on_timeout(&taker->timeout, 0);
}

static void on_answer(void *userdata, uint32_t events)
{
    struct taker *taker = userdata;
    struct taker_answer answer;
    struct iovec part = {.iov_base = &answer, .iov_len = sizeof(answer)};
    union scm_control control;
    struct msghdr message = SCM_MESSAGE(&part, &control);
    const ssize_t n = recvmsg(taker->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int fd = -1;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != (ssize_t)sizeof(answer) || taker->pending == 0) {
        on_loss(taker);
        return;
    }
    note_answer(taker, &answer);
    (void)scm_take(&message, &fd, 1, payload_drop_fd);
    if (!taker->asked) { /* the descriptors of the last request are closed */
        (void)close_fd(fd);
        return;
    }
    if (answer.result == 0 && message.msg_flags & MSG_CTRUNC)
        answer.result = -EMFILE;
    deliver(taker, &answer, fd);
    ask_next(taker);
}

void taker_receipt_init(struct taker_receipt *receipt,
                        void (*answered)(struct taker_receipt *receipt))
{
    *receipt = (struct taker_receipt){.answered = answered, .fd = -1};
    list_init(&receipt->link);
}

void taker_cancel(struct taker_receipt *receipt)
{
    list_unlink(&receipt->link);
    for (size_t i = 0; i < N_ROLES; i++)
        if (state.takers[i].current == receipt)
            state.takers[i].current = NULL;
    receipt->fd = close_fd(receipt->fd);
    receipt->state = TAKER_IDLE;
}

/* Begins the request, or ends it with the answer. Returns TAKER_E_WAIT until there is one. */
static int await(struct taker_receipt *receipt, enum role role, int socket, uint64_t owner)
{
    if (receipt->state == TAKER_WAITS)
        return TAKER_E_WAIT;
    if (receipt->state == TAKER_IDLE) {
        receipt->socket = socket;
        receipt->owner = owner;
        list_push_back(&state.takers[role].waiting, &receipt->link);
        ask_next(&state.takers[role]);
    }
    if (receipt->state == TAKER_IDLE) {
        receipt->state = TAKER_WAITS;
        return TAKER_E_WAIT;
    }
    receipt->state = TAKER_IDLE;
    return receipt->result;
}

int taker_receive(struct taker_receipt *receipt, int socket, uint64_t owner, uint64_t *ret_serial,
                  int *ret_fd)
{
    int r;

    if (!state.started)
        return payload_receive_any(socket, ret_serial, payload_drop_fd, ret_fd);
    r = receipt->state == TAKER_IDLE ? fault_inject("receive") : 0;
    if (r == 0)
        r = await(receipt, ROLE_RECEIVE, socket, owner);
    if (r == 0) {
        *ret_serial = receipt->serial;
        *ret_fd = TAKE_FD(receipt->fd);
    } else if (r == -ETOOMANYREFS || r == -EUSERS)
        r = -EPROTO;
    else if (r < 0 && r != -EPROTO && r != -ENOMEM)
        r = -EMFILE;
    return r;
}

int taker_discard(struct taker_receipt *receipt, int socket, uint64_t owner)
{
    return state.started ? await(receipt, ROLE_DISCARD, socket, owner) : taker_drop_message(socket);
}

bool taker_is_asked(void)
{
    return state.takers[ROLE_RECEIVE].asked || state.takers[ROLE_DISCARD].asked;
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

static unsigned count_later(uint64_t owner)
{
    unsigned n = 0;

    for (size_t i = 0; i < state.n_later; i++)
        n += state.later[i].owner == owner;
    return n;
}

/* Passes the socket to a process that closes it at its end only. */
static int hold_there(int fd)
{
    struct taker *holder = &state.takers[ROLE_HOLD];
    const int r = send_or_replace(holder, holder->fd >= 0, TAKER_HOLD, fd, 0);

    holder->pending = 0;
    return r;
}

/* Keeps a socket whose taker is stuck or has a full queue, or whose owner gets no taker. Those of
 * an owner who has too many would use up the descriptors of this process. */
static void keep_for_later(int fd, uint64_t owner)
{
    if (count_later(owner) >= LATER_OF_OWNER_MAX && hold_there(fd) == 0) {
        (void)close_fd(fd);
        return;
    }
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

/* Ends the process that holds sockets, which closes them. */
static void end_holder(void)
{
    look_at_spent();
    if (state.n_spent < SPENT_MAX / 2)
        give_up(&state.takers[ROLE_HOLD]);
}

/* Tries to drain some of the sockets, in turn: those of one owner must not block the others. */
static void drain_later(void)
{
    const bool any = state.n_later > 0;

    for (unsigned i = 0; i < LATER_TRIED && state.n_later > 0; i++) {
        struct later *later = &state.later[state.next_later++ % state.n_later];
        const int r = drain_there(later->fd, later->owner);

        if (r == 0) {
            close_fd(later->fd);
            *later = state.later[--state.n_later];
        } else if (r != -EUSERS)
            return;
    }
    if (any && state.n_later == 0)
        end_holder();
}

bool taker_is_full(uint64_t owner)
{
    drain_later();
    return count_later(owner) >= LATER_OF_OWNER_MAX;
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

static void close_socket(int fd, uint64_t owner, bool elsewhere)
{
    drain_later();
    if (fd < 0)
        return;
    look_at_spent();
    if (!elsewhere && is_empty(fd))
        (void)close_fd(fd);
    else if (!state.started) {
        taker_drain(fd);
        (void)close_fd(fd);
    } else if (drain_there(fd, owner) == 0)
        (void)close_fd(fd);
    else
        keep_for_later(fd, owner);
}

void taker_close_socket(int fd, uint64_t owner)
{
    close_socket(fd, owner, false);
}

int taker_start(void)
{
    int r = 0;

    for (size_t i = 0; i < N_ROLES; i++) {
        struct taker *taker = &state.takers[i];

        *taker = (struct taker){.fd = -1, .pidfd = -1};
        list_init(&taker->waiting);
        timer_init(&taker->timeout, on_timeout);
    }
    for (size_t i = 0; i < N_ROLES && r == 0; i++)
        if (i == ROLE_RECEIVE || i == ROLE_DRAIN) /* others start when needed, which is rare */
            r = start(&state.takers[i]);
    state.started = r == 0;
    return r;
}

void taker_set_loop(struct loop *loop)
{
    for (size_t i = 0; i < N_ROLES && state.started; i++) {
        struct taker *taker = &state.takers[i];

        unwatch(taker);
        if (state.loop)
            timer_disarm(loop_timers(state.loop), &taker->timeout);
    }
    state.loop = loop;
    if (loop)
        loop_set_close(loop, close_socket);
    for (size_t i = 0; i < N_ROLES && state.started; i++)
        watch(&state.takers[i]);
}

void taker_stop(void)
{
    while (state.started && state.n_later > 0) {
        const int fd = state.later[--state.n_later].fd;

        if (hold_there(fd) == 0)
            (void)close_fd(fd);
    }
    for (size_t i = 0; i < N_ROLES && state.started; i++) {
        /* It must not take what the next supervisor asks another one for. */
        if (state.takers[i].asked)
            (void)syscall(SYS_pidfd_send_signal, state.takers[i].pidfd, SIGKILL, NULL, 0);
        state.takers[i].fd = close_fd(state.takers[i].fd);
        state.takers[i].pidfd = close_fd(state.takers[i].pidfd);
    }
    free(TAKE_PTR(state.later));
    state.allocated = 0;
    state.started = false;
}

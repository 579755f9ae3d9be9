/* SPDX-License-Identifier: MIT */
#include "supervisor/process/notify-server.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/base/uapi.h"
#include "supervisor/loop/toll.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* More than the kernel queues in one socket by default (net.unix.max_dgram_qlen). */
#define CATCH_UP_MAX 1024

struct sender {
    struct ucred is; /* pid 0 = unknown */
    int pidfd;       /* -1 = unknown */
    bool gone;
    bool too_long; /* its datagram */
};

/* clang-format off */
#define SENDER_NULL {.pidfd = -1}
/* clang-format on */

static void sender_deinit(struct sender *sender)
{
    sender->pidfd = close_fd(sender->pidfd);
}

/* Returns 0 for text that is not a number, or a number that is too large. */
static usec_t parse_usec(const char *text)
{
    uint64_t value = 0;

    for (const char *c = text; *c != '\0'; c++)
        if (*c < '0' || *c > '9' || value > USEC_INFINITY / 10 - 1)
            return 0;
        else
            value = value * 10 + (uint64_t)(*c - '0');
    return value;
}

void notify_parse(struct notify_message *ret, char *text)
{
    *ret = (struct notify_message){.pidfd = -1};
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (strcmp(line, "READY=1") == 0)
            ret->ready = true;
        else if (strcmp(line, "WATCHDOG=1") == 0)
            ret->watchdog = true;
        else if (strcmp(line, "WATCHDOG=trigger") == 0)
            ret->watchdog_trigger = true;
        else if (strncmp(line, "EXTEND_TIMEOUT_USEC=", strlen("EXTEND_TIMEOUT_USEC=")) == 0)
            ret->extend = parse_usec(line + strlen("EXTEND_TIMEOUT_USEC="));
        else if (strncmp(line, "STATUS=", strlen("STATUS=")) == 0)
            ret->status = line + strlen("STATUS=");
    }
}

/* The kernel gives a negative errno if the sender was reaped, or if descriptors are short. */
static void take_pidfd(struct sender *sender, const struct cmsghdr *control)
{
    int pidfd;

    memcpy(&pidfd, CMSG_DATA(control), sizeof(pidfd));
    sender->gone = pidfd == -ESRCH || pidfd == -EINVAL;
    sender->pidfd = pidfd < 0 ? -1 : pidfd;
}

static struct sender take_control(struct msghdr *header)
{
    struct sender sender = SENDER_NULL;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len == CMSG_LEN(sizeof(sender.is)))
            memcpy(&sender.is, CMSG_DATA(c), sizeof(sender.is));
        if (c->cmsg_type == TROUPE_SCM_PIDFD && c->cmsg_len == CMSG_LEN(sizeof(int)))
            take_pidfd(&sender, c);
    }
    return sender;
}

/* Reads the next datagram as text into `buffer` (NOTIFY_MAX + 1 bytes). Sets `*ret_cut` if there
 * was more control data than `room`. Returns its length or -errno. */
static ssize_t read_one(int fd, int flags, size_t room, char *buffer, struct sender *ret_sender,
                        bool *ret_cut)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec piece = {.iov_base = buffer, .iov_len = NOTIFY_MAX};
    struct msghdr header = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = room,
    };
    ssize_t n = recvmsg(fd, &header, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    *ret_sender = take_control(&header);
    *ret_cut = header.msg_flags & MSG_CTRUNC;
    /* A truncated message might be misread. */
    ret_sender->too_long = header.msg_flags & MSG_TRUNC;
    if (ret_sender->too_long)
        n = 0;
    buffer[n] = '\0';
    return n;
}

static void pass_pidfd(int fd, int passes)
{
    (void)setsockopt(fd, SOL_SOCKET, TROUPE_SO_PASSPIDFD, &passes, sizeof(passes));
}

/*
 * Reads the next datagram. systemd-notify sends a pipe with BARRIER=1 and waits until all copies of
 * it are closed, so the socket cannot refuse descriptors. A look with room for only the credentials
 * shows whether the datagram has any; if so, the taker receives it. So it does if each call with
 * the sender's socket takes long.
 */
static ssize_t receive(struct notify_server *server, char *buffer, struct sender *ret_sender)
{
    const int fd = server->fd;
    const size_t room = CMSG_SPACE(sizeof(struct ucred));
    const usec_t now = loop_now(server->loop);
    bool has_descriptors, ignored;
    struct toll toll;
    uint64_t owner;
    ssize_t n;
    int r;

    if (server->discarded.state != TAKER_IDLE)
        return -EAGAIN;
    pass_pidfd(fd, 0);
    n = read_one(fd, MSG_PEEK, room, buffer, ret_sender, &has_descriptors);
    pass_pidfd(fd, 1);
    if (n < 0)
        return n;
    owner = taker_owner_of_user(ret_sender->is.uid);
    if (!has_descriptors && !toll_bars(owner, now)) {
        toll = toll_begin(now);
        n = read_one(fd, 0, room + CMSG_SPACE(sizeof(int)), buffer, ret_sender, &ignored);
        (void)toll_end(toll, now, owner);
        return n;
    }
    r = taker_discard(&server->discarded, fd, owner);
    if (r == TAKER_E_WAIT)
        server->blocker = ret_sender->is.uid; /* if it fails */
    return r < 0 ? r : n;
}

static int update_watch(struct notify_server *server)
{
    const bool reads = !server->held && !server->blocked && server->discarded.state == TAKER_IDLE;

    return loop_watch_events(server->loop, &server->watch, reads ? POLLIN : 0);
}

/* Stops reading after an error: the same datagram would otherwise wake the loop forever. */
static void stop_reading(struct notify_server *server, int r)
{
    if (r == -EAGAIN || r == -EINTR)
        return;
    server->blocked = true;
    (void)update_watch(server);
    log_warning("%s: notifications are no longer read, as their descriptors cannot be closed: %s",
                server->path, strerror(-r));
    server->fn(server->userdata, NULL);
}

static void on_discarded(struct taker_receipt *receipt)
{
    struct notify_server *server = list_entry(receipt, struct notify_server, discarded);
    const int r = taker_discard(receipt, server->fd, taker_owner_of_user(server->blocker));

    if (r < 0 && r != -EAGAIN)
        stop_reading(server, r);
    else
        (void)update_watch(server);
}

static bool may_send(const struct notify_senders *senders, uid_t uid)
{
    return senders->any_user || uid == 0 || uid == getuid() || uid == senders->owner;
}

/* Handles the next datagram, if its sender is allowed. False if there is none. */
static bool notify_server_read(struct notify_server *server)
{
    struct notify_message message;
    _cleanup_(sender_deinit)
    struct sender sender = SENDER_NULL;
    char buffer[NOTIFY_MAX + 1];
    ssize_t n;

    if (server->discarded.state != TAKER_IDLE)
        return false;
    n = receive(server, buffer, &sender);
    if (server->discarded.state != TAKER_IDLE)
        (void)update_watch(server);
    if (n < 0) {
        server->blocker = sender.is.uid;
        stop_reading(server, (int)n);
        return false;
    }
    if ((n == 0 && !sender.too_long) || sender.is.pid <= 0 ||
        !may_send(&server->senders, sender.is.uid))
        return true;
    notify_parse(&message, buffer);
    message.too_long = sender.too_long;
    message.pid = sender.is.pid;
    message.pidfd = sender.pidfd;
    message.sender_gone = sender.gone;
    server->fn(server->userdata, &message);
    return true;
}

/* One datagram per turn, so that a flood does not block the loop. */
static void notify_server_on_ready(void *userdata, uint32_t events)
{
    (void)notify_server_read(userdata);
}

void notify_server_catch_up(struct notify_server *server)
{
    /* `fn` may deinit the server. */
    for (unsigned n = 0; n < CATCH_UP_MAX && server->fd >= 0; n++)
        if (!notify_server_read(server))
            return;
}

void notify_server_renew(struct notify_server *server)
{
    char buffer[NOTIFY_MAX + 1];

    for (unsigned n = 0; n < CATCH_UP_MAX; n++) {
        _cleanup_(sender_deinit)
        struct sender sender = SENDER_NULL;
        if (receive(server, buffer, &sender) < 0)
            return;
    }
}

bool notify_sender_is_there(const struct notify_message *message)
{
    if (message->sender_gone)
        return false;
    /* A zombie still has its pid. */
    return message->pidfd < 0 || syscall(SYS_pidfd_send_signal, message->pidfd, 0, NULL, 0) == 0 ||
           errno != ESRCH;
}

static int bind_path(int fd, const char *path, const struct notify_senders *senders)
{
    const uid_t owner = senders->owner;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    strcpy(address.sun_path, path);
    if (unlink(path) < 0 && errno != ENOENT)
        return -errno;
    /* Before bind(), which uses the socket's mode, so that others can never send. */
    if (fchmod(fd, 0600) < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    if (owner != (uid_t)-1 && owner != geteuid() && lchown(path, owner, (gid_t)-1) < 0) {
        int error = errno;
        (void)unlink(path);
        return -error;
    }
    return 0;
}

int notify_server_adopt(struct notify_server *server, struct loop *loop, int fd, const char *path,
                        const struct notify_senders *senders, notify_server_fn fn, void *userdata)
{
    *server = (struct notify_server){
        .loop = loop, .fd = -1, .senders = *senders, .fn = fn, .userdata = userdata};
    taker_receipt_init(&server->discarded, on_discarded);
    _cleanup_free_ char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    int r = loop_watch_fd(loop, &server->watch, fd, POLLIN, notify_server_on_ready, server);
    if (r < 0)
        return r;
    /* bind() applies the umask to the mode. */
    if (senders->any_user)
        (void)chmod(path, 0666);
    server->fd = fd;
    server->path = TAKE_PTR(copy);
    return 0;
}

int notify_server_init(struct notify_server *server, struct loop *loop, const char *path,
                       const struct notify_senders *senders, notify_server_fn fn, void *userdata)
{
    *server = (struct notify_server)NOTIFY_SERVER_NULL;
    /* Otherwise each further process could leave one more socket that nothing can close. */
    if (senders->owner != (uid_t)-1 && taker_is_full(taker_owner_of_user(senders->owner)))
        return -EUSERS;
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, TROUPE_SO_PASSPIDFD, &(int){1}, sizeof(int));
    int r = bind_path(fd, path, senders);
    if (r < 0)
        return r;
    r = notify_server_adopt(server, loop, fd, path, senders, fn, userdata);
    if (r < 0)
        (void)unlink(path);
    else
        (void)TAKE_FD(fd);
    return r;
}

int notify_server_hold(struct notify_server *server, bool hold)
{
    server->held = hold;
    return update_watch(server);
}

/* Returns the taker's owner for what is left in the socket. */
static uint64_t owner_of_rest(const struct notify_server *server)
{
    if (server->blocked)
        return taker_owner_of_user(server->blocker);
    return server->senders.any_user ? (uintptr_t)server
                                    : taker_owner_of_user(server->senders.owner);
}

void notify_server_deinit(struct notify_server *server)
{
    if (server->fd < 0)
        return;
    loop_unwatch(server->loop, &server->watch);
    taker_cancel(&server->discarded);
    loop_close_owned(server->loop, TAKE_FD(server->fd), owner_of_rest(server));
    (void)unlink(server->path);
    free(server->path);
    server->path = NULL;
}

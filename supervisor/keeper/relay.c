/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/relay.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <string.h>

/* The pause when the kernel lacks memory or the manager has just gone: poll() does not report
 * when that is over. */
#define RETRY_MS 100

static int address_from(struct relay *relay, const char *path)
{
    size_t size = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || size < 2)
        return -EAFNOSUPPORT;
    if (size >= sizeof(relay->address.sun_path))
        return -ENAMETOOLONG;
    relay->address.sun_family = AF_UNIX;
    memcpy(relay->address.sun_path, path, size);
    if (path[0] == '@')
        relay->address.sun_path[0] = '\0'; /* abstract address: no NUL at the end */
    relay->address_size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (path[0] == '/' ? 1 : 0));
    return 0;
}

int relay_open(struct relay *relay)
{
    const char *path = getenv("NOTIFY_SOCKET");
    int fds[2];
    *relay = (struct relay){.from = -1, .to = -1};
    if (!path || path[0] == '\0')
        return -ENOENT;
    int r = address_from(relay, path);
    if (r < 0)
        return r;
    relay->to = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (relay->to < 0)
        return -errno;
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0) {
        relay->to = close_fd(relay->to);
        return -errno;
    }
    relay->from = fds[0];
    return fds[1];
}

/* The manager's socket is full. poll() reports room in it only for a socket that is connected to
 * it. */
static void expect_room(struct relay *relay)
{
    relay->connected =
        connect(relay->to, (const struct sockaddr *)&relay->address, relay->address_size) == 0;
}

/* Sends the held text. Returns whether the next one can be taken. Drops the text if the manager
 * has gone. */
static bool pass_on(struct relay *relay)
{
    if (relay->held == 0)
        return true;
    ssize_t n = sendto(relay->to, relay->text, relay->held, MSG_DONTWAIT | MSG_NOSIGNAL,
                       (const struct sockaddr *)&relay->address, relay->address_size);
    const int error = n < 0 ? errno : 0;
    relay->connected = false;
    if (error == EAGAIN)
        expect_room(relay);
    else if (error != ENOBUFS && error != EINTR)
        relay->held = 0;
    return relay->held == 0;
}

void relay_run(struct relay *relay)
{
    if (relay->from < 0)
        return;
    while (pass_on(relay)) {
        ssize_t n = recv(relay->from, relay->text, sizeof(relay->text), MSG_DONTWAIT);
        if (n <= 0)
            return;
        relay->held = (size_t)n;
    }
}

void relay_tell(struct relay *relay, const char *text)
{
    relay_run(relay);
    if (relay->from < 0 || relay->held > 0)
        return;
    relay->held = strlen(text);
    memcpy(relay->text, text, relay->held);
    (void)pass_on(relay);
}

struct pollfd relay_wait(const struct relay *relay)
{
    if (relay->held == 0)
        return (struct pollfd){.fd = relay->from, .events = POLLIN};
    return (struct pollfd){.fd = relay->connected ? relay->to : -1, .events = POLLOUT};
}

int relay_wait_ms(const struct relay *relay)
{
    return relay->held > 0 && !relay->connected ? RETRY_MS : -1;
}

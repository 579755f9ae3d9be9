/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/relay.h"
#include "shared/base/cleanup.h"
#include "shared/base/service-manager.h"
#include <errno.h>
#include <string.h>

/* The pause when the manager's socket is full: poll() reports room only for a connected socket. */
#define RETRY_MS 100

int relay_open(struct relay *relay)
{
    const char *path = getenv("NOTIFY_SOCKET");
    int fds[2];
    *relay = (struct relay){.from = -1, .to = -1};
    if (!path || path[0] == '\0')
        return -ENOENT;
    const int size = service_manager_address(path, &relay->address);
    if (size < 0)
        return size;
    relay->address_size = (socklen_t)size;
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

static int send_to_manager(const struct relay *relay, const char *text, size_t size)
{
    const ssize_t n = sendto(relay->to, text, size, MSG_DONTWAIT | MSG_NOSIGNAL,
                             (const struct sockaddr *)&relay->address, relay->address_size);
    return n < 0 ? -errno : 0;
}

/* Removes a text once the manager has it, or has gone. */
void relay_run(struct relay *relay)
{
    char text[RELAY_TEXT_MAX];
    ssize_t n = -1;
    relay->full = false;
    while (!relay->full &&
           (n = recv(relay->from, text, sizeof(text), MSG_PEEK | MSG_DONTWAIT)) > 0) {
        const int r = send_to_manager(relay, text, (size_t)n);
        relay->full = r == -EAGAIN || r == -ENOBUFS || r == -EINTR;
        if (!relay->full)
            (void)recv(relay->from, text, 0, MSG_DONTWAIT);
    }
    if (!relay->full && n == 0) /* an empty text, which would hold up the others */
        (void)recv(relay->from, text, 0, MSG_DONTWAIT);
}

void relay_tell(struct relay *relay, const char *text)
{
    relay_run(relay);
    if (!relay->full)
        (void)send_to_manager(relay, text, strlen(text));
}

struct pollfd relay_wait(const struct relay *relay)
{
    return (struct pollfd){.fd = relay->full ? -1 : relay->from, .events = POLLIN};
}

int relay_wait_ms(const struct relay *relay)
{
    return relay->full ? RETRY_MS : -1;
}

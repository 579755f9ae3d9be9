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

/* Returns false if the manager is busy; true if it has the text, or has gone. */
static bool send_to_manager(const struct relay *relay, const char *text, size_t size)
{
    return sendto(relay->to, text, size, MSG_DONTWAIT | MSG_NOSIGNAL,
                  (const struct sockaddr *)&relay->address, relay->address_size) >= 0 ||
           (errno != EAGAIN && errno != ENOBUFS && errno != EINTR);
}

void relay_run(struct relay *relay)
{
    ssize_t n = 0;
    while (n >= 0 && (relay->size == 0 || send_to_manager(relay, relay->text, relay->size))) {
        n = recv(relay->from, relay->text, sizeof(relay->text), MSG_DONTWAIT);
        relay->size = n > 0 ? (size_t)n : 0;
    }
}

void relay_tell(struct relay *relay, const char *text)
{
    relay_run(relay);
    if (relay->size == 0)
        (void)send_to_manager(relay, text, strlen(text));
}

struct pollfd relay_wait(const struct relay *relay)
{
    return (struct pollfd){.fd = relay->size > 0 ? -1 : relay->from, .events = POLLIN};
}

int relay_wait_ms(const struct relay *relay)
{
    return relay->size > 0 ? RETRY_MS : -1;
}

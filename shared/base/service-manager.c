/* SPDX-License-Identifier: MIT */
#include "shared/base/service-manager.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int service_manager_address(const char *path, struct sockaddr_un *ret)
{
    const size_t size = strlen(path);

    if (size < 2 || (*path != '/' && *path != '@'))
        return -EAFNOSUPPORT;
    if (size >= sizeof(ret->sun_path))
        return -ENAMETOOLONG;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, path, size);
    if (*path == '@')
        ret->sun_path[0] = '\0'; /* an abstract name has no NUL at its end */
    return (int)(offsetof(struct sockaddr_un, sun_path) + size + (*path == '/'));
}

void service_manager_connect(struct service_manager *manager)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address;
    const int size = path ? service_manager_address(path, &address) : -ENOENT;

    *manager = (struct service_manager)SERVICE_MANAGER_NULL;
    if (size < 0)
        return;
    manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (manager->fd >= 0 &&
        connect(manager->fd, (const struct sockaddr *)&address, (socklen_t)size) < 0)
        manager->fd = close_fd(manager->fd);
}

void service_manager_close(struct service_manager *manager)
{
    manager->fd = close_fd(manager->fd);
}

/* Returns true also if the manager has gone: it will not come back under this name. */
static bool send_text(const struct service_manager *manager, const char *text)
{
    const ssize_t n = send(manager->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);

    return n >= 0 || (errno != EAGAIN && errno != ENOBUFS);
}

static bool send_state(const struct service_manager *manager, unsigned state)
{
    char text[64];

    switch (state) {
    case SERVICE_RELOADING:
        (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                       manager->reloading_at);
        return send_text(manager, text);
    case SERVICE_READY:
        return send_text(manager, "READY=1");
    case SERVICE_STOPPING:
        return send_text(manager, "STOPPING=1");
    default:
        return send_text(manager, "WATCHDOG=1");
    }
}

static bool send_status(const struct service_manager *manager)
{
    char text[SERVICE_STATUS_MAX + 8];

    (void)snprintf(text, sizeof(text), "STATUS=%s", manager->status);
    return send_text(manager, text);
}

/* One datagram per state: within one, the manager would choose the order. */
bool service_manager_send(struct service_manager *manager)
{
    if (manager->fd < 0)
        return true;
    for (unsigned state = SERVICE_RELOADING; state <= SERVICE_ALIVE; state <<= 1) {
        if (!(manager->pending & state))
            continue;
        if (!send_state(manager, state))
            return false;
        manager->pending &= ~state;
    }
    if (manager->status_changed && !send_status(manager))
        return false;
    manager->status_changed = false;
    return true;
}

void service_manager_tell(struct service_manager *manager, enum service_state state, usec_t now)
{
    if (state == SERVICE_STOPPING)
        manager->pending = 0;
    if (state == SERVICE_RELOADING) {
        /* An unsent READY=1 would follow, and end the reload too early. */
        manager->pending &= ~(unsigned)SERVICE_READY;
        manager->reloading_at = now;
    }
    manager->pending |= state;
    (void)service_manager_send(manager);
}

void service_manager_status(struct service_manager *manager, const char *status)
{
    char line[SERVICE_STATUS_MAX];

    (void)snprintf(line, sizeof(line), "%.*s", (int)strcspn(status, "\n"), status);
    if (manager->fd < 0 || strcmp(line, manager->status) == 0)
        return;
    strcpy(manager->status, line);
    manager->status_changed = true;
    (void)service_manager_send(manager);
}

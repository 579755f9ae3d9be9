/* SPDX-License-Identifier: MIT */
#include "worker/nats/notice.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define RETRY_USEC (100 * USEC_PER_MSEC)

void notice_init(struct notice *notice)
{
    const char *path = getenv("NOTIFY_SOCKET");
    const size_t size = path ? strlen(path) : 0;

    *notice = (struct notice){.fd = -1, .retry_at = USEC_INFINITY};
    if (size < 2 || size >= sizeof(notice->address.sun_path) || (*path != '/' && *path != '@'))
        return;
    notice->address.sun_family = AF_UNIX;
    memcpy(notice->address.sun_path, path, size);
    if (*path == '@')
        notice->address.sun_path[0] = '\0';
    notice->address_size = (unsigned)(offsetof(struct sockaddr_un, sun_path) + size);
    notice->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

void notice_deinit(struct notice *notice)
{
    notice->fd = close_fd(notice->fd);
}

/* Returns false if the manager cannot take it now. */
static bool send_text(const struct notice *notice, const char *text)
{
    const struct sockaddr *address = (const struct sockaddr *)&notice->address;

    return sendto(notice->fd, text, strlen(text), MSG_NOSIGNAL, address, notice->address_size) >=
               0 ||
           (errno != EAGAIN && errno != ENOBUFS);
}

/* The end is not said before the beginning, nor in one datagram with it. */
static void say(struct notice *notice)
{
    char text[sizeof(notice->status) + 32];
    const bool ready = notice->ready, stopping = notice->stopping && !ready;

    (void)snprintf(text, sizeof(text), "%s%s%s%s",
                   ready      ? "READY=1\n"
                   : stopping ? "STOPPING=1\n"
                              : "",
                   notice->has_status ? "STATUS=" : "", notice->has_status ? notice->status : "",
                   notice->has_status ? "\n" : "");
    if (!send_text(notice, text))
        return;
    notice->ready = false;
    notice->stopping = notice->stopping && !stopping;
    notice->has_status = false;
}

usec_t notice_serve(struct notice *notice, usec_t now)
{
    if (notice->retry_at > now)
        return notice->retry_at;
    say(notice);
    if (notice->stopping)
        say(notice);
    notice->retry_at =
        notice->ready || notice->stopping || notice->has_status ? now + RETRY_USEC : USEC_INFINITY;
    return notice->retry_at;
}

void notice_status(struct notice *notice, const char *status)
{
    if (notice->fd < 0)
        return;
    notice->has_status = true;
    (void)snprintf(notice->status, sizeof(notice->status), "%s", status);
    notice->retry_at = 0;
    (void)notice_serve(notice, clock_now());
}

void notice_ready(struct notice *notice, const char *status)
{
    notice->ready = true;
    notice_status(notice, status);
}

void notice_stopping(struct notice *notice, const char *status)
{
    notice->stopping = true;
    notice_status(notice, status);
}

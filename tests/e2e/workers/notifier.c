/* SPDX-License-Identifier: MIT */
/*
 * A service that feeds its watchdog again and again, with its user and the count as its status:
 * STATUS=uid 65534, 7 signs of life.
 */
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PAUSE_MS 50

int main(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (!path || fd < 0 || strlen(path) >= sizeof(address.sun_path))
        return 1;
    memcpy(address.sun_path, path, strlen(path));
    for (unsigned n = 1;; n++) {
        char message[128];
        int size = snprintf(message, sizeof(message), "WATCHDOG=1\nSTATUS=uid %u, %u signs of life",
                            (unsigned)geteuid(), n);

        if (sendto(fd, message, (size_t)size, 0, (const struct sockaddr *)&address,
                   sizeof(address)) < 0) {
            perror("sendto");
            return 1;
        }
        (void)poll(NULL, 0, PAUSE_MS);
    }
}

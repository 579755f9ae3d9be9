/* SPDX-License-Identifier: MIT */

/*
 * How soon the control socket answers:
 *
 *     ask SOCKET COUNT PAUSE_US METHOD PARAMETERS
 *
 * PARAMETERS as JSON. One connection, a call every so often. Prints one JSON object.
 */

#include "tests/bench/load/pause.h"
#include "tests/bench/load/samples.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static char answer[1 << 16];

/* A call and its answer, which ends with a NUL byte and is no error. Its size, or -errno. */
static ssize_t call(int fd, const char *message)
{
    char start[32] = "";
    ssize_t size = 0, n;

    if (send(fd, message, strlen(message) + 1, MSG_NOSIGNAL) < 0)
        return -errno;
    do {
        n = recv(fd, answer, sizeof(answer), 0);
        if (n <= 0)
            return n < 0 ? -errno : -EPIPE;
        if (size == 0)
            memcpy(start, answer, n < 31 ? (size_t)n : 31);
        size += n;
    } while (answer[n - 1] != '\0');
    return strstr(start, "\"error\"") ? -EBADMSG : size;
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path));
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return fd;
}

int main(int argc, char **argv)
{
    struct samples samples;
    char message[512];
    ssize_t size = 0;

    if (argc != 6)
        return 2;
    snprintf(message, sizeof(message), "{\"method\":\"%s\",\"parameters\":%s}", argv[4], argv[5]);
    unsigned count = (unsigned)strtoul(argv[2], NULL, 10);
    if (samples_init(&samples, count) < 0)
        return 1;
    int fd = connect_to(argv[1]);
    if (fd < 0)
        size = fd;
    for (unsigned i = 0; size >= 0 && i < count; i++) {
        uint64_t begin = samples_now();

        size = call(fd, message);
        samples_add(&samples, begin, samples_now());
        pause_usec(strtoul(argv[3], NULL, 10));
    }
    if (size < 0) {
        fprintf(stderr, "ask: %s\n", strerror((int)-size));
        return 1;
    }
    printf("{\"bytes\": %zd, ", size);
    samples_print(&samples, "");
    printf("}\n");
    samples_deinit(&samples);
    return 0;
}

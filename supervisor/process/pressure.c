/* SPDX-License-Identifier: MIT */
#include "supervisor/process/pressure.h"

#include "shared/base/cleanup.h"
#include "supervisor/process/cgroup.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *pressure_kind_to_string(enum pressure_kind kind)
{
    static const char *const names[_PRESSURE_N_KINDS] = {
        [PRESSURE_MEMORY] = "memory", [PRESSURE_CPU] = "cpu", [PRESSURE_IO] = "io"};

    return names[kind];
}

int pressure_open(const struct cgroup_tree *tree, enum pressure_kind kind)
{
    char name[32];
    int fd;

    if (tree && tree->fd >= 0) {
        (void)snprintf(name, sizeof(name), "%s.pressure", pressure_kind_to_string(kind));
        fd = openat(tree->fd, name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    } else {
        (void)snprintf(name, sizeof(name), "/proc/pressure/%s", pressure_kind_to_string(kind));
        fd = open(name, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    }
    return fd < 0 ? -errno : fd;
}

/* Any other event is an error, such as that the cgroup is gone, and would come again and again. */
static void on_event(void *userdata, uint32_t events)
{
    struct pressure_watch *watch = userdata;

    if (events == POLLPRI)
        watch->risen(watch);
    else
        pressure_unwatch(watch);
}

/* The kernel takes a trigger with its final zero. */
static int set_trigger(int fd, usec_t threshold)
{
    char trigger[64];
    const int n = snprintf(trigger, sizeof(trigger), "some %" PRIu64 " %" PRIu64,
                           (uint64_t)threshold, (uint64_t)PRESSURE_WINDOW);

    return write(fd, trigger, (size_t)n + 1) < 0 ? -errno : 0;
}

int pressure_watch(struct pressure_watch *watch, struct loop *loop, enum pressure_kind kind, int fd,
                   usec_t threshold, void (*risen)(struct pressure_watch *watch))
{
    int r = set_trigger(fd, threshold);

    *watch = (struct pressure_watch){.kind = kind, .fd = fd, .loop = loop, .risen = risen};
    if (r == 0)
        r = loop_watch_fd(loop, &watch->watch, fd, POLLPRI, on_event, watch);
    if (r < 0)
        pressure_unwatch(watch);
    return r;
}

void pressure_unwatch(struct pressure_watch *watch)
{
    if (!watch->loop)
        return;
    loop_unwatch(watch->loop, &watch->watch);
    watch->fd = close_fd(watch->fd);
    watch->loop = NULL;
}

/* "some avg10=18.04 avg60=…" */
usec_t pressure_read(const struct pressure_watch *watch)
{
    char text[256] = "";
    unsigned whole, hundredths;
    const char *number;

    if (!watch->loop || pread(watch->fd, text, sizeof(text) - 1, 0) <= 0)
        return 0;
    number = strstr(text, "avg10=");
    if (!number || sscanf(number, "avg10=%u.%2u", &whole, &hundredths) != 2) /* NOLINT: kernel's */
        return 0;
    return (usec_t)(whole * 100 + hundredths) * USEC_PER_SEC / 10000;
}

/* SPDX-License-Identifier: MIT */
#include "worker/examples/orchestrate/load.h"
#include "worker/examples/orchestrate/orchestrate.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEADER_MAX 200

static uint64_t now_msec(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int fail(struct load *load, int error, const char *reason)
{
    (void)snprintf(load->reason, sizeof(load->reason), "%s", reason);
    return error;
}

/* ---- the process ---- */

static int start(struct load *load)
{
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
        return fail(load, -errno, "a data source cannot be started");
    load->pid = fork();
    if (load->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(sockets[1], STDIN_FILENO);
        dup2(sockets[1], STDOUT_FILENO);
        execl("/proc/self/exe", "orchestrate", "source", (char *)NULL);
        _exit(127);
    }
    close(sockets[1]);
    load->fd = sockets[0];
    if (load->pid < 0) {
        load->pid = 0;
        load_end(load);
        return fail(load, -EAGAIN, "a data source cannot be started");
    }
    return 0;
}

void load_end(struct load *load)
{
    if (load->fd >= 0)
        close(load->fd);
    load->fd = -1;
    if (load->pid == 0)
        return;
    kill(load->pid, SIGKILL);
    while (waitpid(load->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    load->pid = 0;
}

/* ---- questions and answers ---- */

/* Receives some bytes, as soon as there are any: at least one. */
static ssize_t receive(struct load *load, char *data, size_t size, uint64_t deadline)
{
    for (;;) {
        struct pollfd poll_fd = {.fd = load->fd, .events = POLLIN};
        uint64_t now = now_msec();
        int r = now >= deadline ? 0 : poll(&poll_fd, 1, (int)(deadline - now));
        ssize_t n;

        if (r == 0)
            return fail(load, -ETIMEDOUT, "the data source has not answered in time");
        n = r < 0 ? -1 : recv(load->fd, data, size, 0);
        if (n > 0)
            return n;
        if (n == 0 || (errno != EINTR && errno != EAGAIN))
            return fail(load, -EPIPE, "the data source is gone");
    }
}

/* Receives a line without its end, and does not read the data behind it. */
static int receive_line(struct load *load, char *line, size_t size, uint64_t deadline)
{
    for (size_t n = 0; n < size; n++) {
        ssize_t r = receive(load, line + n, 1, deadline);

        if (r < 0)
            return (int)r;
        if (line[n] == '\n') {
            line[n] = '\0';
            return 0;
        }
    }
    return fail(load, -EPIPE, "the data source has answered nonsense");
}

static int receive_data(struct load *load, char *data, size_t size, uint64_t deadline)
{
    for (size_t n = 0; n < size;) {
        ssize_t r = receive(load, data + n, size - n, deadline);

        if (r < 0)
            return (int)r;
        n += (size_t)r;
    }
    return 0;
}

static int ask(struct load *load, const char *item)
{
    char line[ORCHESTRATE_ITEM_MAX + 2];
    int size = snprintf(line, sizeof(line), "%s\n", item);

    /* The source reads everything before it answers, so there is always enough room. */
    if (send(load->fd, line, (size_t)size, MSG_NOSIGNAL) != size)
        return fail(load, -EPIPE, "the data source is gone");
    return 0;
}

static int answer(struct load *load, char **ret_data, size_t *ret_size)
{
    uint64_t deadline = now_msec() + load->timeout_msec, size;
    char header[HEADER_MAX];
    int r;

    r = receive_line(load, header, sizeof(header), deadline);
    if (r < 0)
        return r;
    if (strncmp(header, "error ", 6) == 0)
        return fail(load, -EIO, header + 6);
    if (strncmp(header, "data ", 5) != 0 || orchestrate_number(header + 5, &size) < 0)
        return fail(load, -EPIPE, "the data source has answered nonsense");
    *ret_data = malloc(size + 1);
    if (!*ret_data)
        return fail(load, -ENOMEM, "out of memory");
    r = receive_data(load, *ret_data, size, deadline);
    if (r < 0)
        free(*ret_data);
    *ret_size = size;
    return r;
}

int load_item(struct load *load, const char *item, char **ret_data, size_t *ret_size)
{
    int r = 0;

    if (load->pid == 0)
        r = start(load);
    if (r == 0)
        r = ask(load, item);
    if (r == 0)
        r = answer(load, ret_data, ret_size);
    /* After any error except its own, the source's next answer could be wrong. */
    if (r < 0 && r != -EIO)
        load_end(load);
    return r;
}

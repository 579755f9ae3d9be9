/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/pump.h"

#include "shared/base/cleanup.h"
#include "shared/base/close-from.h"
#include "shared/base/scm.h"
#include "supervisor/keeper/sandbox.h"
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PUMP_SIZE 16384

static void drop(int fd)
{
    (void)close(fd);
}

/* Receives bytes of a process that fails before it makes its pipe, or the pipe, which becomes
 * standard input. */
static ssize_t receive_first(char *buffer)
{
    union scm_control control;
    struct iovec part = {.iov_base = buffer, .iov_len = PUMP_SIZE};
    struct msghdr message = SCM_MESSAGE(&part, &control);
    int pipe = -1;
    ssize_t n = scm_receive(STDIN_FILENO, &message, MSG_CMSG_CLOEXEC);

    if (n <= 0 || scm_take(&message, &pipe, 1, drop) == 0)
        return n;
    if (dup2(pipe, STDIN_FILENO) < 0)
        _exit(EXIT_FAILURE);
    (void)close(pipe);
    return 0;
}

/* Waits until there is room, so a service that writes faster than it is read fills its pipe. */
static void forward(const char *data, ssize_t size)
{
    while (size > 0) {
        ssize_t n = send(STDOUT_FILENO, data, (size_t)size, MSG_NOSIGNAL);

        if (n < 0)
            _exit(EXIT_FAILURE);
        data += n;
        size -= n;
    }
}

/* Waits for output. Returns false if no reader is left: the service has ended, and the
 * supervisor has closed its end. Otherwise a stranger to whom the service has sent the pipe could
 * keep the pump. */
static bool wait_for_output(void)
{
    struct pollfd ends[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = STDOUT_FILENO}};

    return poll(ends, ELEMENTS(ends), -1) > 0 && ends[1].revents == 0;
}

/* The signals that the keeper blocks are also blocked here. */
static _Noreturn void run(int socket, int output)
{
    static char buffer[PUMP_SIZE];
    ssize_t n;

    if (dup2(socket, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0)
        _exit(EXIT_FAILURE);
    close_from(STDOUT_FILENO + 1);
    (void)prctl(PR_SET_NAME, "trouped-pump");
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)sandbox_set_capabilities(0, true);
    n = receive_first(buffer);
    do
        forward(buffer, n);
    while (wait_for_output() && (n = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0);
    _exit(EXIT_SUCCESS);
}

pid_t pump_start(int output, int *ret_socket)
{
    int ends[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        run(ends[1], output);
    if (pid < 0)
        pid = -errno;
    /* Nothing is on its way in the socket yet. */
    (void)close(ends[1]);
    if (pid < 0)
        (void)close(ends[0]);
    else
        *ret_socket = ends[0];
    return pid;
}

/* ---- those that are left ---- */

/* A pump ends as soon as the supervisor has given up its output, 1 s after the process. */
#define PATIENCE     (2 * USEC_PER_SEC)
#define OF_OWNER_MAX 8

bool left_pumps_permit(const struct left_pumps *left, uint32_t owner, usec_t now)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < left->n; i++)
        n += left->at[i].owner == owner && usec_sub(now, left->at[i].since) >= PATIENCE;
    return n < OF_OWNER_MAX;
}

void left_pumps_add(struct left_pumps *left, pid_t pid, uint32_t owner, usec_t now)
{
    if (left->n == PUMPS_LEFT_MAX)
        return;
    left->at[left->n].pid = pid;
    left->at[left->n].owner = owner;
    left->at[left->n++].since = now;
}

void left_pumps_remove(struct left_pumps *left, pid_t pid)
{
    for (uint32_t i = 0; i < left->n; i++)
        if (left->at[i].pid == pid) {
            left->at[i] = left->at[--left->n];
            return;
        }
}

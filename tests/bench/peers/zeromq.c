/* SPDX-License-Identifier: MIT */

/*
 * ZeroMQ, one way, PUSH to PULL between two processes:
 *
 *     zeromq ADDRESS COUNT BYTES
 *
 * ADDRESS as ipc:///path. One JSON object; the time ends when the last message has arrived.
 */

#include "tests/bench/load/samples.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

static void *connected(int type, const char *address)
{
    void *context = zmq_ctx_new();
    void *socket = context ? zmq_socket(context, type) : NULL;

    if (!socket)
        return NULL;
    if (type == ZMQ_PULL ? zmq_bind(socket, address) < 0 : zmq_connect(socket, address) < 0)
        return NULL;
    return socket;
}

/* Begins when `bound` says that the other end is there: what is sent before may never arrive. */
static int push(int bound, const char *address, uint64_t count, size_t size)
{
    char byte, *data = calloc(1, size);
    void *socket = read(bound, &byte, 1) == 1 ? connected(ZMQ_PUSH, address) : NULL;

    if (!socket || !data)
        return 1;
    for (uint64_t i = 0; i < count; i++)
        if (zmq_send(socket, data, size, 0) < 0)
            return 1;
    free(data);
    return 0; /* the socket stays open: one that is closed may lose what it has not yet sent */
}

static int pull(void *socket, uint64_t count, size_t size)
{
    uint64_t begin = 0;
    char *data = malloc(size);
    int r = data ? 0 : -1;

    for (uint64_t i = 0; r >= 0 && i < count; i++) {
        r = zmq_recv(socket, data, size, 0);
        if (i == 0)
            begin = samples_now();
    }
    if (r >= 0) {
        double seconds = (double)(samples_now() - begin) / 1e9;
        printf("{\"messages_per_s\": %.1f, \"bytes_per_s\": %.1f}\n", (double)(count - 1) / seconds,
               (double)(count - 1) * (double)size / seconds);
    }
    free(data);
    return r;
}

int main(int argc, char **argv)
{
    int bound[2], r;

    if (argc != 4 || pipe(bound) < 0)
        return 2;
    uint64_t count = strtoull(argv[2], NULL, 10);
    size_t size = strtoull(argv[3], NULL, 10);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (push(bound[0], argv[1], count, size) == 0)
            pause(); /* what is left is being sent in the background */
        _exit(1);
    }
    void *socket = pid > 0 ? connected(ZMQ_PULL, argv[1]) : NULL;
    r = socket && write(bound[1], "", 1) == 1 ? pull(socket, count, size) : -1;
    if (r < 0)
        fprintf(stderr, "zeromq: %s\n", zmq_strerror(zmq_errno()));
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
    return r < 0;
}

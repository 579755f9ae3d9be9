/* SPDX-License-Identifier: MIT */
#include "worker/exec/reader.h"

#include "shared/base/cleanup.h"
#include "shared/base/close-from.h"
#include "shared/base/scm.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The size of a pipe, and of the largest checkpoint; one byte more shows that a checkpoint is too
 * large. */
#define READ_SIZE (65536 + 1)
/* Bounds the reads that empty a pipe or socket after the command's end: other processes may still
 * write to it. A socket holds fewer messages, as each takes more than 512 bytes of its buffer. */
#define DRAIN_READS 1024
/* How often to check whether a killed reader has ended. */
#define RETRY USEC_PER_MSEC

/* The requests. BEGIN comes with the read ends of standard output and standard error. */
#define BEGIN  'b'
#define FINISH 'f'

/* A message: its tag, then data. */
static char buffer[1 + READ_SIZE];

/* ---- in the reader ---- */

/* The descriptors that the reader reads; after SOCKET, the descriptors of the command that lead to
 * it. */
enum {
    SOCKET,
    OUTPUT = STDOUT_FILENO,
    ERROR = STDERR_FILENO,
    ITEMS = COMMAND_EMIT_FD,
    CHECKPOINTS = COMMAND_CHECKPOINT_FD,
    N_FDS
};

static const char tags[N_FDS] = {[OUTPUT] = READER_OUTPUT,
                                 [ERROR] = READER_ERROR,
                                 [ITEMS] = READER_ITEM,
                                 [CHECKPOINTS] = READER_CHECKPOINT};

/* Pipes lead to the reader, or sockets that keep the bounds of each write. */
static bool is_pipe(int which)
{
    return which <= ERROR;
}

struct reading {
    struct pollfd fds[N_FDS]; /* -1 = closed */
};

/* Waits until there is room, which slows down a command that writes too fast. */
static void send_message(const struct reading *reading, char tag, size_t size)
{
    buffer[0] = tag;
    while (send(reading->fds[SOCKET].fd, buffer, 1 + size, MSG_NOSIGNAL) < 0)
        if (errno != EINTR)
            _exit(EXIT_FAILURE);
}

/* Reads once, and closes a pipe at its end. Returns whether there was data. */
static bool forward(struct reading *reading, int which)
{
    struct pollfd *from = &reading->fds[which];
    ssize_t n = from->fd < 0 ? 0 : read(from->fd, buffer + 1, READ_SIZE);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n > 0 || (n == 0 && from->fd >= 0 && !is_pipe(which))) {
        send_message(reading, tags[which], (size_t)n);
        return true;
    }
    from->fd = close_fd(from->fd);
    return false;
}

static void finish(struct reading *reading)
{
    for (int which = OUTPUT; which < N_FDS; which++) {
        for (int i = 0; i < DRAIN_READS && forward(reading, which); i++)
            ;
        reading->fds[which].fd = close_fd(reading->fds[which].fd);
    }
    send_message(reading, READER_DONE, 0);
}

static void drop(int fd)
{
    close_fd(fd);
}

static void handle_request(struct reading *reading)
{
    union scm_control control;
    int ends[N_FDS] = {-1, -1, -1, -1, -1};
    char request;
    struct iovec part = {.iov_base = &request, .iov_len = sizeof(request)};
    struct msghdr message = SCM_MESSAGE(&part, &control);
    ssize_t n = scm_receive(reading->fds[SOCKET].fd, &message, MSG_CMSG_CLOEXEC);

    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0)
        _exit(EXIT_SUCCESS);
    (void)scm_take(&message, ends + OUTPUT, N_FDS - OUTPUT, drop);
    if (request == FINISH) {
        finish(reading);
        return;
    }
    for (int which = OUTPUT; which < N_FDS; which++)
        reading->fds[which].fd = ends[which];
}

static _Noreturn void serve(int fd)
{
    struct reading reading;

    for (int which = 0; which < N_FDS; which++)
        reading.fds[which] = (struct pollfd){.fd = which == SOCKET ? fd : -1, .events = POLLIN};
    for (;;) {
        if (poll(reading.fds, N_FDS, -1) < 0)
            continue;
        for (int which = N_FDS - 1; which > SOCKET; which--)
            if (reading.fds[which].revents)
                (void)forward(&reading, which);
        if (reading.fds[SOCKET].revents)
            handle_request(&reading);
    }
}

/* Blocks signals: those to the process group are for the worker. Closes all other descriptors:
 * other processes may wait for their end. */
static _Noreturn void become_reader(int fd, pid_t parent)
{
    sigset_t all;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(EXIT_FAILURE);
    (void)prctl(PR_SET_NAME, "exec-reader");
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    if (dup2(fd, STDIN_FILENO) < 0)
        _exit(EXIT_FAILURE);
    close_from(STDIN_FILENO + 1);
    serve(STDIN_FILENO);
}

/* ---- in the process of a command ---- */

static int give(int fd, const int *ends, size_t n)
{
    char request = BEGIN;
    const struct iovec data = {.iov_base = &request, .iov_len = sizeof(request)};

    return scm_send(fd, data, ends, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Makes the pipe or socket between the reader and the command's descriptor `which`. */
static int make_ends(int which, int *ret_reader, int *ret_command)
{
    int ends[2], r;

    r = is_pipe(which) ? pipe2(ends, O_CLOEXEC)
                       : socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends);
    if (r < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
        return -errno;
    *ret_reader = ends[0];
    *ret_command = fcntl(ends[1], F_DUPFD_CLOEXEC, COMMAND_FDS_END);
    return *ret_command < 0 ? -errno : 0;
}

int reader_attach(int fd, bool channels)
{
    const int end = channels ? N_FDS : ERROR + 1;
    int reader[N_FDS], command[N_FDS], r = 0;

    for (int which = OUTPUT; r == 0 && which < end; which++)
        r = make_ends(which, &reader[which], &command[which]);
    if (r == 0)
        r = give(fd, reader + OUTPUT, (size_t)(end - OUTPUT));
    for (int which = OUTPUT; r == 0 && which < end; which++)
        r = dup2(command[which], which) < 0 ? -errno : 0;
    return r;
}

/* ---- in this process ---- */

int reader_start(struct reader *reader)
{
    const pid_t parent = getpid();
    int ends[2];
    pid_t pid;

    if (reader->pid > 0)
        return 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    /* A child without an exit signal: wait(2) does not find it. */
    pid = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);
    if (pid == 0)
        become_reader(ends[1], parent);
    close_fd(ends[1]);
    if (pid < 0) {
        close_fd(ends[0]);
        return -errno;
    }
    *reader = (struct reader){.pid = pid, .fd = ends[0]};
    return 0;
}

int reader_finish(const struct reader *reader)
{
    const char request = FINISH;

    return send(reader->fd, &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno
                                                                                        : 0;
}

int reader_receive(const struct reader *reader, struct reader_message *ret)
{
    ssize_t n = recv(reader->fd, buffer, sizeof(buffer), MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -EPIPE;
    *ret = (struct reader_message){
        .tag = (enum reader_tag)buffer[0], .data = buffer + 1, .size = (size_t)n - 1};
    return 1;
}

bool reader_end(struct reader *reader, usec_t limit)
{
    const usec_t until = usec_add(clock_now(), limit);
    const struct timespec pause = usec_to_timespec(RETRY);
    pid_t ended;

    if (reader->pid <= 0)
        return true;
    close_fd(reader->fd);
    (void)kill(reader->pid, SIGKILL);
    while ((ended = waitpid(reader->pid, NULL, (int)__WCLONE | WNOHANG)) == 0 &&
           clock_now() < until)
        (void)nanosleep(&pause, NULL);
    *reader = (struct reader)READER_NULL;
    return ended != 0;
}

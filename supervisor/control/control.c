/* SPDX-License-Identifier: MIT */
#include "supervisor/control/control.h"

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "shared/base/scm.h"
#include "supervisor/control/control-client.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/job/job.h"
#include "supervisor/process/holding.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* How long all clients together may take to read their last answers. Before a restart, everything
 * else waits for them. */
#define DRAIN_RESTART (200 * USEC_PER_MSEC)
#define DRAIN_STOP    (2 * USEC_PER_SEC)

int control_fd(const struct control *control)
{
    return control->acceptor.fd;
}

unsigned control_n_clients(const struct control *control)
{
    return control->n_clients;
}

void control_review_clients(struct control *control)
{
    list_for_each_entry (client, &control->clients, struct client, link)
        client_review(client);
}

static void on_paused(struct acceptor *acceptor, int error)
{
    const struct control *control = list_entry(acceptor, struct control, acceptor);

    limited_log_write(control->context->log, NULL, LOG_LEVEL_WARNING,
                      "cannot accept clients for now: %s", strerror(-error));
}

static int on_accepted(struct acceptor *acceptor, int fd)
{
    struct control *control = list_entry(acceptor, struct control, acceptor);
    int r = client_new(control, fd, NULL);

    if (r < 0)
        limited_log_write(control->context->log, NULL, LOG_LEVEL_NOTICE,
                          "a client is turned away: %s", strerror(-r));
    return r;
}

static int accept_worker(void *userdata, struct submit_socket *socket, int fd)
{
    struct control *control = userdata;
    int r = client_new(control, fd, socket);

    if (r < 0)
        limited_log_write(control->context->log, socket->options.group, LOG_LEVEL_NOTICE,
                          "a worker of %s is turned away as a client: %s", socket->options.group,
                          strerror(-r));
    return r;
}

int control_new(struct control **ret, struct control_context *context, int listen_fd)
{
    struct control *control;
    int flags = fcntl(listen_fd, F_GETFL), r;

    /* A service manager may have passed a blocking socket. */
    if (flags < 0 || fcntl(listen_fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    control = calloc(1, sizeof(*control));
    if (!control)
        return -ENOMEM;
    (void)scm_refuse(listen_fd);
    for (struct request_interface *const *i = context->interfaces; *i; i++)
        interface_read(&(*i)->description, (*i)->text);
    control->context = context;
    control->acceptor =
        (struct acceptor){.loop = context->loop, .accepted = on_accepted, .paused = on_paused};
    list_init(&control->clients);
    work_queue_init(&control->work, context->loop);
    accounts_init(&control->accounts, &context->jobs->blobs);
    r = acceptor_start(&control->acceptor, listen_fd);
    if (r < 0) {
        free(control);
        return r;
    }
    *context->submits = (struct submit_server){.accept = accept_worker, .userdata = control};
    *ret = control;
    return 0;
}

void control_adopt_clients(struct control *control, struct held_table *table)
{
    unsigned n = 0, n_lost = 0;
    struct held *held;

    while ((held = held_take_any(table, HOLDING_CLIENT))) {
        int r = client_adopt(control, held);

        n++;
        if (r == 0)
            continue;
        n_lost++;
        limited_log_write(control->context->log, NULL, LOG_LEVEL_WARNING,
                          "a client of the former supervisor is cut off: %s", strerror(-r));
    }
    if (n > 0)
        log_info("%u of %u clients of the former supervisor continue", n - n_lost, n);
}

void control_set_path(struct control *control, const char *path, bool is_own)
{
    struct stat status;

    control->owns_path = is_own;
    if (!control->path)
        control->path = strdup(path);
    if (lstat(path, &status) < 0)
        return;
    control->device = status.st_dev;
    control->inode = status.st_ino;
}

/* The socket at the path may be another supervisor's. */
bool control_has_path(const struct control *control)
{
    struct stat status;

    return control->path && lstat(control->path, &status) == 0 && S_ISSOCK(status.st_mode) &&
           status.st_dev == control->device && status.st_ino == control->inode;
}

static void remove_path(struct control *control)
{
    if (control->owns_path && control_has_path(control))
        unlink(control->path);
    free(TAKE_PTR(control->path));
}

int control_replace(struct control *control, int listen_fd)
{
    acceptor_stop(&control->acceptor);
    if (control->owns_path) /* else the service manager still listens on it */
        listener_end(control->acceptor.fd);
    close_fd(control->acceptor.fd);
    return acceptor_start(&control->acceptor, listen_fd);
}

static void stop_accepting(struct control *control)
{
    acceptor_stop(&control->acceptor);
    /* Not a socket on which the service manager or the successor still listens. */
    if (control->path && control->owns_path)
        listener_end(control->acceptor.fd);
    remove_path(control);
    control->acceptor.fd = close_fd(control->acceptor.fd);
    control->context->submits->accept = NULL;
}

void control_drain(struct control *control, bool restarting)
{
    usec_t end;

    if (restarting)
        free(TAKE_PTR(control->path)); /* the successor's */
    stop_accepting(control);
    list_for_each_entry (client, &control->clients, struct client, link)
        client_bid_farewell(client, restarting ? "Restarting" : "Stopping");
    end = usec_add(clock_now(), restarting ? DRAIN_RESTART : DRAIN_STOP);
    list_for_each_entry (client, &control->clients, struct client, link)
        client_drain(client, end);
}

void control_free(struct control *control)
{
    if (!control)
        return;
    stop_accepting(control);
    list_for_each_entry_safe (client, &control->clients, struct client, link)
        client_free(client);
    work_queue_deinit(&control->work);
    free(control);
}

/* ---- the listening socket, which may replace that of a dead supervisor ---- */

#define LOCK_SUFFIX ".lock"
#define PATH_SIZE   (sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(LOCK_SUFFIX))

/* The pause between two attempts. */
#define LOCK_PAUSE_MS 10

/* Returns 0, or -errno: -EWOULDBLOCK if another process keeps the lock. */
static int lock_file(int fd, int patience_ms)
{
    for (int left = patience_ms; flock(fd, LOCK_EX | LOCK_NB) < 0; left -= LOCK_PAUSE_MS) {
        if (errno != EWOULDBLOCK || left <= 0)
            return -errno;
        (void)poll(NULL, 0, LOCK_PAUSE_MS);
    }
    return 0;
}

static bool is_at_path(int fd, const char *path)
{
    struct stat held, there;

    return fstat(fd, &held) == 0 && stat(path, &there) == 0 && held.st_ino == there.st_ino &&
           held.st_dev == there.st_dev;
}

/*
 * The previous holder may have removed the file that was locked here: retries until the locked file
 * is the one at the path. Returns the descriptor or -errno.
 */
static int lock_take(const char *path, int patience_ms)
{
    int r;

    for (;;) {
        _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd < 0)
            return -errno;
        r = lock_file(fd, patience_ms);
        if (r < 0)
            return r;
        if (is_at_path(fd, path))
            return TAKE_FD(fd);
    }
}

/*
 * The pid of the listening process; 0 = unknown (another pid namespace). A successful connect does
 * not prove that it lives: the kernel tears down an io_uring, and the sockets that it polls, some
 * time after the process.
 */
static pid_t listener(int fd)
{
    struct ucred owner = {0};
    socklen_t size = sizeof(owner);

    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size);
    return owner.pid;
}

/* Returns whether the process has ended within `patience_ms`. A zombie has also ended, such as a
 * supervisor whose keeper was killed: a process closes its lock before it becomes a zombie. */
static bool is_gone(pid_t pid, int patience_ms)
{
    _cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = {.fd = pidfd, .events = POLLIN};

    return pidfd < 0 ? errno == ESRCH : poll(&end, 1, patience_ms) == 1;
}

static int take_over(const char *path)
{
    log_info("%s: left behind by a supervisor that is gone; taken over", path);
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Removes a socket whose supervisor is dead. */
static int clear_path(const char *path, const struct sockaddr_un *address, int patience_ms)
{
    _cleanup_close_ int fd = -1;
    struct stat status;
    pid_t pid;

    if (lstat(path, &status) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(status.st_mode))
        return -EEXIST;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    /* EAGAIN: its backlog is full, but it is alive. */
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EAGAIN) {
        pid = listener(fd);
        if (pid > 0 && is_gone(pid, patience_ms))
            return take_over(path);
        log_error("%s: in use by process %d; is another trouped running?", path, (int)pid);
        return -EADDRINUSE;
    }
    if (errno == ECONNREFUSED)
        return take_over(path);
    return errno == ENOENT ? 0 : -errno;
}

static int bind_path(const char *path, const struct sockaddr_un *address, int patience_ms)
{
    _cleanup_close_ int fd = -1;
    int r = fault_inject("socket");

    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    (void)scm_refuse(fd);
    r = clear_path(path, address, patience_ms);
    if (r < 0)
        return r;
    if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        return -errno;
    if (chmod(path, 0666) < 0 || listen(fd, SOMAXCONN) < 0) {
        r = -errno;
        unlink(path);
        return r;
    }
    return TAKE_FD(fd);
}

/* listener() is the last process that called listen(). */
int control_listen_again(int fd)
{
    return listen(fd, SOMAXCONN) < 0 ? -errno : 0;
}

/* Returns 0 or, after a log line, -ENAMETOOLONG. */
static int set_address(struct sockaddr_un *address, const char *path)
{
    const size_t length = strlen(path);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (length == 0 || length >= sizeof(address->sun_path)) {
        log_error("%s: a socket's path has 1 to %zu characters", path,
                  sizeof(address->sun_path) - 1);
        return -ENAMETOOLONG;
    }
    memcpy(address->sun_path, path, length + 1);
    return 0;
}

/* Logs which process has the lock: the one that listens, if any. Returns -EADDRINUSE. */
static int locked(const char *path, const struct sockaddr_un *address)
{
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    pid_t pid = 0;

    if (fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
        pid = listener(fd);
    if (pid > 0)
        log_error("%s: in use by process %d; is another trouped running?", path, (int)pid);
    else
        log_error("%s" LOCK_SUFFIX ": locked by another process; is another trouped running?",
                  path);
    return -EADDRINUSE;
}

int control_lock(const char *path, int *lock, int patience_ms)
{
    struct sockaddr_un address;
    char lock_path[PATH_SIZE];
    int r = set_address(&address, path);

    if (r < 0)
        return r;
    (void)snprintf(lock_path, sizeof(lock_path), "%s" LOCK_SUFFIX, path);
    if (*lock >= 0 && is_at_path(*lock, lock_path))
        return 0;
    r = lock_take(lock_path, patience_ms);
    if (r == -EWOULDBLOCK)
        return locked(path, &address);
    if (r < 0) {
        log_error("%s: cannot make the control socket: %s", lock_path, strerror(-r));
        return r;
    }
    close_fd(*lock);
    *lock = r;
    return 0;
}

void control_watch_files(const char *path, int inotify)
{
    const uint32_t events = IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF; /* a link less */
    char lock_path[PATH_SIZE];

    (void)snprintf(lock_path, sizeof(lock_path), "%s" LOCK_SUFFIX, path);
    (void)inotify_add_watch(inotify, path, events);
    (void)inotify_add_watch(inotify, lock_path, events);
}

void control_unlock(const char *path, int lock)
{
    char lock_path[PATH_SIZE];

    (void)snprintf(lock_path, sizeof(lock_path), "%s" LOCK_SUFFIX, path);
    if (lock >= 0 && is_at_path(lock, lock_path))
        (void)unlink(lock_path);
    close_fd(lock);
}

int control_listen(const char *path, int patience_ms)
{
    struct sockaddr_un address;
    int r = set_address(&address, path);

    if (r < 0)
        return r;
    r = bind_path(path, &address, patience_ms);
    if (r == -EEXIST)
        log_error("%s: exists and is no socket; it is left alone", path);
    else if (r < 0 && r != -EADDRINUSE)
        log_error("%s: cannot make the control socket: %s", path, strerror(-r));
    return r;
}

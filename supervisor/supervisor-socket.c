/* SPDX-License-Identifier: MIT */

/* Opens the control socket, and makes it and its lock again if they are removed from the file
 * system: no client could connect otherwise, and another supervisor could start. */

#include "shared/base/cleanup.h"
#include "supervisor/control/control.h"
#include "supervisor/supervisor-private.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/* Returns the socket that the service manager has opened, or -errno, logged. */
static int inherited_socket(int n)
{
    if (n < 0) {
        log_error("cannot use $LISTEN_FDS: %s", strerror(-n));
        return n;
    }
    if (n > 1) {
        log_error("LISTEN_FDS=%d: trouped serves one socket; the unit trouped.socket takes one "
                  "ListenStream=",
                  n);
        return -EINVAL;
    }
    if (sd_is_socket(SD_LISTEN_FDS_START, AF_UNIX, SOCK_STREAM, 1) > 0)
        return SD_LISTEN_FDS_START;
    log_error("the socket that the service manager passes is not a listening Unix stream socket: "
              "ListenStream= with a path");
    return -EPROTOTYPE;
}

/* Lets the keeper hold the socket and the lock of its path, so that clients can connect across a
 * crash. If that fails, the next supervisor makes another socket. */
static void hold_socket(struct supervisor *supervisor, int fd)
{
    struct spawner *spawner = &supervisor->parts.process.spawner;
    struct spawner_client *client = &supervisor->socket_client;
    const int fds[] = {fd, supervisor->socket_lock}; /* control_lock() has opened the lock */
    int r = client->id != 0 ? 0 : spawner_register(spawner, client);

    if (r == 0)
        r = holding_put(&supervisor->socket, spawner, client, 0,
                        &(struct holding_content){.kind = HOLDING_SOCKET,
                                                  .name = supervisor->options->socket_path,
                                                  .fds = fds,
                                                  .n_fds = ELEMENTS(fds)});
    if (r < 0)
        log_warning("the control socket will not outlive a crash: %s", strerror(-r));
}

/* Returns a new socket, which the keeper also holds, or -errno, logged. */
static int make_socket(struct supervisor *supervisor, int patience_ms)
{
    const char *path = supervisor->options->socket_path;
    int r = control_lock(path, &supervisor->socket_lock, patience_ms);

    if (r == 0)
        r = control_listen(path, patience_ms);
    if (r >= 0)
        hold_socket(supervisor, r);
    return r;
}

/* Returns the socket of the previous supervisor, or -1. */
static int held_socket(struct supervisor *supervisor)
{
    const char *path = supervisor->options->socket_path;
    struct held *held = held_take(&supervisor->parts.process.held, HOLDING_SOCKET, path);
    int fd;

    if (held && held->n_fds > 0 && control_listen_again(held->fds[0]) == 0) {
        fd = TAKE_FD(held->fds[0]);
        if (held->n_fds > 1) /* since 1.1 */
            supervisor->socket_lock = TAKE_FD(held->fds[1]);
        held_adopt(held, &supervisor->socket_client, &supervisor->socket);
        return fd;
    }
    if (held)
        held_discard(held);
    return -1;
}

/* Locks the path of the service manager's socket like that of our own. Returns 0, or -EADDRINUSE,
 * logged. */
static int lock_inherited(struct supervisor *supervisor, int fd)
{
    const char *path = supervisor->options->socket_path;
    int r = control_lock(path, &supervisor->socket_lock, CONTROL_PATIENCE_MS);

    if (r == 0)
        hold_socket(supervisor, fd);
    return r == -EADDRINUSE ? r : 0;
}

static bool is_bound_to(int fd, const char *path)
{
    struct sockaddr_un address = {0};
    socklen_t size = sizeof(address);

    return getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
           strncmp(address.sun_path, path, sizeof(address.sun_path)) == 0;
}

static bool is_same_socket(int fd, int other)
{
    struct stat status, other_status;

    return fstat(fd, &status) == 0 && fstat(other, &other_status) == 0 &&
           status.st_ino == other_status.st_ino;
}

/* Returns the socket of the previous supervisor, that of the service manager (-1 = none), or a new
 * one; or -errno, logged. */
static int choose_socket(struct supervisor *supervisor, int inherited)
{
    int fd = held_socket(supervisor), r;

    if (fd >= 0)
        return fd;
    if (inherited < 0)
        return make_socket(supervisor, CONTROL_PATIENCE_MS);
    r = lock_inherited(supervisor, inherited);
    return r < 0 ? r : fcntl(inherited, F_DUPFD_CLOEXEC, 0);
}

static void review_lock(struct supervisor *supervisor)
{
    const int before = supervisor->socket_lock;

    if (before < 0 ||
        control_lock(supervisor->options->socket_path, &supervisor->socket_lock, 0) < 0 ||
        supervisor->socket_lock == before)
        return;
    log_warning("%s: its lock was removed from the file system; made again",
                supervisor->options->socket_path);
    hold_socket(supervisor, control_fd(supervisor->control));
}

static void make_again(struct supervisor *supervisor)
{
    int fd;

    log_warning("%s: removed from the file system; making it again",
                supervisor->options->socket_path);
    (void)mkdir(supervisor->runtime_directory, 0755);
    fd = make_socket(supervisor, 0);
    if (fd < 0)
        return; /* logged */
    if (control_replace(supervisor->control, fd) < 0)
        log_error("%s: out of memory serving the control socket", supervisor->options->socket_path);
    control_set_path(supervisor->control, supervisor->options->socket_path, true);
}

static void on_files_changed(void *userdata, uint32_t events)
{
    struct supervisor *supervisor = userdata;
    char ignored[1024];

    (void)!read(supervisor->socket_inotify, ignored, sizeof(ignored));
    supervisor_review_socket(supervisor);
}

/* Without inotify, only a reload notices. */
static void watch_files(struct supervisor *supervisor)
{
    if (supervisor->socket_inotify < 0) {
        supervisor->socket_inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (supervisor->socket_inotify >= 0)
            (void)loop_watch_fd(supervisor->parts.loop, &supervisor->socket_watch,
                                supervisor->socket_inotify, POLLIN, on_files_changed, supervisor);
    }
    control_watch_files(supervisor->options->socket_path, supervisor->socket_inotify);
}

void supervisor_review_socket(struct supervisor *supervisor)
{
    if (supervisor->has_foreign_socket || !supervisor->control)
        return;
    if (control_has_path(supervisor->control))
        review_lock(supervisor);
    else
        make_again(supervisor);
    watch_files(supervisor);
}

int supervisor_open_socket(struct supervisor *supervisor)
{
    const char *path = supervisor->options->socket_path;
    int n = sd_listen_fds(1);
    _cleanup_close_ int inherited = n != 0 ? inherited_socket(n) : -1, fd = -1;
    bool is_own;
    int r;

    if (n != 0 && inherited < 0)
        return inherited; /* logged */
    supervisor->has_foreign_socket = n != 0 && !is_bound_to(inherited, path);
    fd = supervisor->has_foreign_socket ? TAKE_FD(inherited) : choose_socket(supervisor, inherited);
    if (fd < 0)
        return fd; /* logged */
    is_own = inherited < 0 || !is_same_socket(inherited, fd);
    r = control_new(&supervisor->control, &supervisor->parts.control, fd);
    if (r < 0) {
        log_error("cannot serve the control socket: %s", strerror(-r));
        return r;
    }
    (void)TAKE_FD(fd);
    if (supervisor->has_foreign_socket)
        return 0;
    control_set_path(supervisor->control, path, is_own);
    /* It may have been removed before. */
    supervisor_review_socket(supervisor);
    return 0;
}

void supervisor_close_socket(struct supervisor *supervisor)
{
    if (supervisor->socket_inotify >= 0)
        loop_unwatch(supervisor->parts.loop, &supervisor->socket_watch);
    supervisor->socket_inotify = close_fd(supervisor->socket_inotify);
    control_free(TAKE_PTR(supervisor->control));
    control_unlock(supervisor->options->socket_path, supervisor->socket_lock);
    supervisor->socket_lock = -1;
}

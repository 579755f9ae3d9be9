/* SPDX-License-Identifier: MIT */
#include "supervisor/process/submit-socket.h"

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/scm.h"
#include "supervisor/loop/listener.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/process/holding.h"
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ACCEPTS_PER_TURN 4
/* The pause in accepting when no descriptor or memory is left. */
#define ACCEPT_PAUSE (100 * USEC_PER_MSEC)
#define BACKLOG      64

/* ---- connections ---- */

static int accept_one(struct submit_socket *self)
{
    const struct submit_server *server = self->options.server;
    int fd = accept4(self->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), r;

    if (fd < 0)
        return -errno;
    r = server->accept ? server->accept(server->userdata, self, fd) : -ECONNREFUSED;
    if (r < 0)
        listener_turn_away(self->options.loop, fd);
    return r;
}

static void pause_accepting(struct submit_socket *self)
{
    struct loop *loop = self->options.loop;

    timer_arm(loop_timers(loop), &self->pause, usec_add(loop_now(loop), ACCEPT_PAUSE));
    (void)loop_watch_events(loop, &self->watch, 0);
}

static void on_pause_over(struct timer *timer, usec_t now)
{
    struct submit_socket *self = list_entry(timer, struct submit_socket, pause);

    (void)now;
    (void)loop_watch_events(self->options.loop, &self->watch, POLLIN);
}

static void on_connection(void *userdata, uint32_t events)
{
    struct submit_socket *self = userdata;

    (void)events;
    for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
        int r = accept_one(self);

        if (r == -EAGAIN)
            return;
        if (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS) {
            pause_accepting(self);
            return;
        }
    }
}

/* ---- the socket ---- */

/* Takes over `fd`, also on error. */
static int make(struct submit_socket **ret, const struct submit_socket_options *options, int fd)
{
    struct submit_socket *self = calloc(1, sizeof(*self));
    int r;

    if (!self) {
        close_fd(fd);
        return -ENOMEM;
    }
    self->options = *options;
    self->fd = fd;
    list_init(&self->clients);
    timer_init(&self->pause, on_pause_over);
    r = loop_watch_fd(options->loop, &self->watch, fd, POLLIN, on_connection, self);
    if (r < 0)
        (void)submit_socket_free(self);
    else
        *ret = self;
    return r;
}

/* Opens a directory that no other user can look into. Whoever can open the socket by its name,
 * even for a moment, keeps the right to connect. */
static int open_private(const char *path)
{
    _cleanup_close_ int fd = -1;
    struct stat status;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    return status.st_uid == geteuid() && (status.st_mode & 077) == 0 ? TAKE_FD(fd) : -EPERM;
}

/* Makes a socket that listens and has no name. `*ret_place` is for connecting. */
static int listen_in(int directory, int *ret_place)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_close_ int fd = -1, place = -1;
    int r = fault_inject("socket");

    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    (void)scm_refuse(fd);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/socket",
                   directory);
    (void)unlink(address.sun_path); /* of a supervisor that was killed here */
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    place = open(address.sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    r = place < 0 || chmod(address.sun_path, 0666) < 0 ? -errno : 0;
    if (unlink(address.sun_path) < 0 && r == 0)
        r = -errno;
    if (r == 0 && listen(fd, BACKLOG) < 0)
        r = -errno;
    if (r < 0)
        return r;
    *ret_place = TAKE_FD(place);
    return TAKE_FD(fd);
}

int submit_socket_new(struct submit_socket **ret, const struct submit_socket_options *options,
                      const char *directory, int *ret_fd)
{
    _cleanup_close_ int private = -1, place = -1;
    _cleanup_free_ char *path = NULL;
    int r;

    if (asprintf(&path, "%s/submit", directory) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    private = open_private(path);
    if (private < 0)
        return private;
    r = listen_in(private, &place);
    (void)rmdir(path);
    if (r >= 0)
        r = make(ret, options, r);
    if (r == 0)
        *ret_fd = TAKE_FD(place);
    return r;
}

struct submit_socket *submit_socket_free(struct submit_socket *self)
{
    if (!self)
        return NULL;
    list_for_each_safe (node, &self->clients) {
        struct submit_client *client = list_entry(node, struct submit_client, link);

        client->end(client);
    }
    loop_unwatch(self->options.loop, &self->watch);
    timer_disarm(loop_timers(self->options.loop), &self->pause);
    /* The keeper and the worker may hold it for a little longer. */
    listener_end(self->fd);
    holding_drop(&self->holding, self->options.spawner);
    spawner_forget(self->options.spawner, &self->keeper);
    close_fd(self->fd);
    free(self);
    return NULL;
}

/* ---- for the next supervisor ---- */

int submit_socket_hold(struct submit_socket *self, const char *name)
{
    struct spawner *spawner = self->options.spawner;
    int r = self->keeper.id != 0 ? 0 : spawner_register(spawner, &self->keeper);

    if (r < 0)
        return r;
    return holding_put(&self->holding, spawner, &self->keeper, 0,
                       &(struct holding_content){
                           .kind = HOLDING_SUBMITS,
                           .name = name,
                           .fds = &self->fd,
                           .n_fds = 1,
                       });
}

int submit_socket_adopt(struct submit_socket **ret, const struct submit_socket_options *options,
                        struct held_table *table, const char *name)
{
    struct held *held = held_take(table, HOLDING_SUBMITS, name);
    int r;

    *ret = NULL;
    if (!held)
        return 0;
    r = held->version == 0 && held->n_fds == 1 ? make(ret, options, TAKE_FD(held->fds[0]))
                                               : -EPROTO;
    if (r < 0)
        held_discard(held);
    else
        held_adopt(held, &(*ret)->keeper, &(*ret)->holding);
    return r;
}

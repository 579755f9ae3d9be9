/* SPDX-License-Identifier: MIT */
#include "supervisor/process/submit-socket.h"

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/scm.h"
#include "supervisor/loop/listener.h"
#include "supervisor/process/holding.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64

static int on_accepted(struct acceptor *acceptor, int fd)
{
    struct submit_socket *self = list_entry(acceptor, struct submit_socket, acceptor);
    const struct submit_server *server = self->options.server;

    return server->accept ? server->accept(server->userdata, self, fd) : -ECONNREFUSED;
}

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
    self->acceptor = (struct acceptor){.loop = options->loop, .accepted = on_accepted};
    list_init(&self->clients);
    r = acceptor_start(&self->acceptor, fd);
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
    list_for_each_entry_safe (client, &self->clients, struct submit_client, link)
        client->end(client);
    acceptor_stop(&self->acceptor);
    /* The keeper and the worker may hold it for a little longer. */
    listener_end(self->acceptor.fd);
    holding_drop(&self->holding, self->options.spawner);
    spawner_forget(self->options.spawner, &self->keeper);
    close_fd(self->acceptor.fd);
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
                           .fds = &self->acceptor.fd,
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

/* SPDX-License-Identifier: MIT */

#include "supervisor/control/control.h"

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "shared/base/scm.h"
#include "supervisor/control/control-client.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/job/job.h"
#include "supervisor/process/held.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define ACCEPTS_PER_TURN 16
#define DRAIN_MAX        USEC_PER_SEC
/* The pause in accepting when no descriptor or memory is left. */
#define ACCEPT_PAUSE (100 * USEC_PER_MSEC)

unsigned control_n_clients(const struct control *control)
{
    return control->n_clients;
}

void control_review_clients(struct control *control)
{
    list_for_each (node, &control->clients) {
        client_review(client_of(node, link));
    }
}

static void on_accept_timer(struct timer *timer, usec_t now)
{
    struct control *control = list_entry(timer, struct control, accept_timer);

    (void)now;
    (void)loop_watch_events(control->context->loop, &control->watch, POLLIN);
}

/* Stops polling for a while: the socket stays ready, so each turn of the loop would try again. */
static void pause_accepting(struct control *control, int error)
{
    struct loop *loop = control->context->loop;

    limited_log_write(control->context->log, NULL, LOG_LEVEL_WARNING,
                      "cannot accept clients for now: %s", strerror(-error));
    if (timer_arm(loop_timers(loop), &control->accept_timer,
                  usec_add(loop_now(loop), ACCEPT_PAUSE)) == 0)
        (void)loop_watch_events(loop, &control->watch, 0);
}

static int accept_one(struct control *control)
{
    int fd, r;

    r = fault_inject("accept");
    if (r < 0)
        return r;
    fd = accept4(control->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = client_new(control, fd, NULL);
    if (r == 0)
        return 0;
    limited_log_write(control->context->log, NULL, LOG_LEVEL_NOTICE, "a client is turned away: %s",
                      strerror(-r));
    loop_close(control->context->loop, fd);
    return 0;
}

static int accept_worker(void *userdata, struct submit_socket *socket, int fd)
{
    struct control *control = userdata;
    int r = client_new(control, fd, socket);

    if (r < 0)
        limited_log_write(control->context->log, submit_socket_group(socket), LOG_LEVEL_NOTICE,
                          "a worker of %s is turned away as a client: %s",
                          submit_socket_group(socket), strerror(-r));
    return r;
}

static void on_connection(void *userdata, uint32_t events)
{
    struct control *control = userdata;

    (void)events;
    for (unsigned i = 0; i < ACCEPTS_PER_TURN; i++) {
        int r = accept_one(control);

        if (r == -EAGAIN)
            return;
        if (r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS) {
            pause_accepting(control, r);
            return;
        }
        /* Other errors concern one client, which is gone already. */
    }
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
    control->fd = listen_fd;
    list_init(&control->clients);
    work_queue_init(&control->work, context->loop);
    accounts_init(&control->accounts, &context->jobs->blobs);
    timer_init(&control->accept_timer, on_accept_timer);
    r = loop_watch_fd(context->loop, &control->watch, listen_fd, POLLIN, on_connection, control);
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
        log_info("%u of %u clients of the former supervisor go on", n - n_lost, n);
}

void control_own_path(struct control *control, const char *path)
{
    struct stat status;

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
    if (control_has_path(control))
        unlink(control->path);
    free(TAKE_PTR(control->path));
}

int control_replace(struct control *control, int listen_fd)
{
    loop_unwatch(control->context->loop, &control->watch);
    timer_disarm(loop_timers(control->context->loop), &control->accept_timer);
    close_fd(control->fd);
    control->fd = listen_fd;
    return loop_watch_fd(control->context->loop, &control->watch, listen_fd, POLLIN, on_connection,
                         control);
}

static void stop_accepting(struct control *control)
{
    loop_unwatch(control->context->loop, &control->watch);
    timer_disarm(loop_timers(control->context->loop), &control->accept_timer);
    remove_path(control);
    /* Not loop_close(), which shuts the socket down: the service manager still listens on it. */
    control->fd = close_fd(control->fd);
    control->context->submits->accept = NULL;
}

void control_drain(struct control *control, bool restarting)
{
    usec_t end = usec_add(clock_now(), DRAIN_MAX);

    if (restarting)
        free(TAKE_PTR(control->path)); /* the successor's */
    stop_accepting(control);
    list_for_each (node, &control->clients) {
        client_drain(client_of(node, link), restarting ? "Restarting" : "Stopping", end);
    }
}

void control_free(struct control *control)
{
    if (!control)
        return;
    stop_accepting(control);
    list_for_each_safe (node, &control->clients) {
        client_free(client_of(node, link));
    }
    work_queue_deinit(&control->work);
    free(control);
}

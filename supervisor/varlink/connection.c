/* SPDX-License-Identifier: MIT */

#include "supervisor/varlink/connection.h"

#include "shared/base/cleanup.h"
#include "shared/base/scm.h"
#include "supervisor/loop/taker.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define READ_MAX ((size_t)64 << 10)

/* ---- what is waited for ---- */

/* When the connection is to be closed for lack of progress; USEC_INFINITY = never. */
static usec_t due_at(const struct connection *connection)
{
    usec_t due = USEC_INFINITY;

    if (connection->finishing)
        return usec_add(connection->active_at, CONNECTION_LINGER);
    /* A client that waits for a reply is not idle; one that does not read it is. */
    if (connection->idle_max != USEC_INFINITY)
        due = usec_add(connection->busy ? loop_now(connection->loop) : connection->active_at,
                       connection->idle_max);
    if (connection->begun_at != 0 && usec_add(connection->begun_at, connection->request_max) < due)
        due = usec_add(connection->begun_at, connection->request_max);
    return due;
}

static void arm_timer(struct connection *connection)
{
    const usec_t due = due_at(connection);

    if (due != USEC_INFINITY)
        timer_arm(loop_timers(connection->loop), &connection->timer, due);
}

/* Length of the first complete message in the buffer, or SIZE_MAX. */
static size_t complete_message(struct connection *connection)
{
    const char *end;

    if (connection->in_scanned < connection->in_end) {
        end = memchr(connection->in + connection->in_scanned, '\0',
                     connection->in_end - connection->in_scanned);
        if (end) {
            connection->in_scanned = (size_t)(end - connection->in);
            return connection->in_scanned - connection->in_start;
        }
        connection->in_scanned = connection->in_end;
    }
    return SIZE_MAX;
}

/* The next message has to wait until the last reply has been read: at most one is queued. */
static bool wants_next(const struct connection *connection)
{
    return !connection->busy && !connection->finishing && connection_unread(connection) == 0;
}

static void note_begun(struct connection *connection, bool begun)
{
    if (!begun) {
        connection->begun_at = 0;
    } else if (connection->begun_at == 0) {
        connection->begun_at = loop_now(connection->loop);
        arm_timer(connection);
    }
}

/* POLLHUP alone reports only that both directions are closed. A client that has closed just its own
 * (POLLRDHUP) may still wait for its reply. */
void connection_update(struct connection *connection)
{
    bool unread = connection_unread(connection) > 0;
    bool wants_message = wants_next(connection), complete;
    uint32_t events = POLLHUP;

    if (connection->dead)
        return;
    if (unread)
        events |= POLLOUT;
    complete = complete_message(connection) != SIZE_MAX;
    if (wants_message && (complete || connection->eof))
        loop_defer(connection->loop, &connection->again);
    else if ((wants_message || connection->finishing) && !connection->eof)
        events |= POLLIN;
    note_begun(connection, wants_message && !complete && connection->in_end > connection->in_start);
    if (connection->dead)
        return;
    if (loop_watch_events(connection->loop, &connection->watch, events) < 0)
        connection_close(connection);
}

/* ---- in ---- */

static int make_room(struct connection *connection)
{
    size_t size = connection->in_end - connection->in_start, wanted;
    int r;

    if (connection->in_start > 0) {
        memmove(connection->in, connection->in + connection->in_start, size);
        connection->in_scanned -= connection->in_start;
        connection->in_start = 0;
        connection->in_end = size;
    }
    if (connection->in_allocated - size >= READ_MAX / 2)
        return 0;
    wanted = size == 0 ? 4096 : connection->in_allocated * 2;
    if (size > 0 && wanted < size + READ_MAX)
        wanted = size + READ_MAX;
    if (wanted <= connection->in_allocated)
        return 0;
    r = account_realloc(connection->account, ACCOUNT_REQUESTS, &connection->in,
                        &connection->in_allocated, wanted);
    if (r == -EDQUOT)
        connection->handler->cut_off(connection, "requests that are not complete take too much");
    return r;
}

static void free_in(struct connection *connection)
{
    connection->in_start = connection->in_end = connection->in_scanned = 0;
    account_free(connection->account, ACCOUNT_REQUESTS, &connection->in, &connection->in_allocated);
}

void connection_charge(struct connection *connection, struct toll toll)
{
    if (toll_end(toll, loop_now(connection->loop), taker_owner_of_user(connection->peer.uid)) !=
            TOLL_BARRED ||
        connection->dead)
        return;
    connection->handler->cut_off(connection, "too much waits at its socket to be woken");
    connection->costly = true;
    connection_close(connection);
}

/* Returns the number of bytes. Notes the end of the stream, and closes a broken connection. */
static size_t receive(struct connection *connection, void *buffer, size_t size)
{
    const struct toll toll = toll_begin(loop_now(connection->loop));
    ssize_t n = -1;
    int r = connection->takes_no_descriptors ? 0 : scm_look(connection->fd, buffer, &size);

    if (r == SCM_E_DESCRIPTORS) {
        connection->handler->cut_off(connection, "it sent descriptors");
        connection_close(connection);
        return 0;
    }
    errno = -r;
    if (r == 0)
        n = size > 0 ? recv(connection->fd, buffer, size, MSG_DONTWAIT) : 0;
    if (n > 0)
        connection_charge(connection, toll);
    if (n > 0)
        return (size_t)n;
    if (n == 0)
        connection->eof = true;
    else if (errno != EAGAIN && errno != EINTR)
        connection_close(connection);
    return 0;
}

static void read_some(struct connection *connection)
{
    size_t room, n;

    if (make_room(connection) < 0) {
        connection_close(connection);
        return;
    }
    room = connection->in_allocated - connection->in_end;
    n = receive(connection, connection->in + connection->in_end, room < READ_MAX ? room : READ_MAX);
    if (n > 0) {
        connection->in_end += (size_t)n;
        connection->active_at = loop_now(connection->loop);
    }
}

/* Reads what a client still sends after its last reply, so that it does not block in send(). */
static void discard(struct connection *connection)
{
    char buffer[16384];

    connection->n_discarded += receive(connection, buffer, sizeof(buffer));
    if (connection->n_discarded > CONNECTION_LINGER_MAX)
        connection_close(connection);
    else if (connection->eof && connection_unread(connection) == 0)
        connection_close(connection);
}

static void drop_message(struct connection *connection, size_t size)
{
    connection->in_start += size + 1;
    connection->in_scanned = connection->in_start;
    if (connection->in_start == connection->in_end)
        free_in(connection);
}

static void set_busy(struct connection *connection, bool busy)
{
    connection->busy = busy;
    account_set_at_work(connection->account, &connection->place, busy || connection->attached);
}

static void deliver(struct task *task)
{
    struct connection *connection = list_entry(task, struct connection, task);
    const size_t size = complete_message(connection);

    if (connection->dead)
        return;
    connection->handler->message(connection, connection->in + connection->in_start, size);
    drop_message(connection, size);
    connection_update(connection);
}

/* Handles the next message if it is complete; otherwise reads more of it. */
static void take_message(struct connection *connection)
{
    size_t size = complete_message(connection);

    if (size == SIZE_MAX && !connection->eof) {
        read_some(connection);
        size = complete_message(connection);
    }
    if (connection->dead)
        return;
    if ((size == SIZE_MAX ? connection->in_end - connection->in_start : size) >
        connection_input_max(connection)) {
        connection->handler->too_large(connection);
        connection_finish(connection);
    } else if (size != SIZE_MAX) {
        set_busy(connection, true);
        task_run(&connection->task);
    } else if (connection->eof && connection_unread(connection) == 0) {
        connection_close(connection); /* an incomplete message is dropped */
    }
}

static void again(struct loop_deferred *deferred)
{
    struct connection *connection = list_entry(deferred, struct connection, again);

    if (connection->dead || !wants_next(connection))
        return;
    take_message(connection);
    connection_update(connection);
}

static void turn(void *userdata, uint32_t events)
{
    struct connection *connection = userdata;

    if (events & POLLNVAL)
        connection_close(connection);
    if (!connection->dead && connection_unread(connection) > 0 &&
        (events & (POLLOUT | POLLHUP | POLLERR)))
        connection_flush(connection);
    if (connection->dead)
        return;
    if (connection->busy && (events & POLLOUT) && connection_unread(connection) == 0)
        connection->handler->sent(connection);
    if (connection->finishing)
        discard(connection);
    else if (connection->busy && (events & (POLLHUP | POLLERR)))
        connection_close(connection);
    else if (wants_next(connection) && (events & (POLLIN | POLLHUP | POLLERR)))
        take_message(connection);
    connection_update(connection);
}

/* ---- life ---- */

static void timed(struct timer *timer, usec_t now)
{
    struct connection *connection = list_entry(timer, struct connection, timer);

    if (due_at(connection) > now) {
        arm_timer(connection);
        return;
    }
    if (!connection->finishing && connection->begun_at != 0)
        connection->handler->cut_off(connection, "it began a request and did not complete it");
    connection_close(connection);
}

static void closed(struct loop_deferred *deferred)
{
    struct connection *connection = list_entry(deferred, struct connection, closing);

    connection->handler->closed(connection);
}

int connection_init(struct connection *connection, int fd, struct peer *peer,
                    const struct connection_options *options)
{
    struct loop *loop = options->work->loop;
    struct account *account = account_get(options->accounts, peer->uid, options->may_change);
    int r;

    if (!account)
        return -ENOMEM;
    *connection = (struct connection){.loop = loop,
                                      .work = options->work,
                                      .account = account,
                                      .handler = options->handler,
                                      .fd = fd,
                                      .watch = LOOP_WATCH_NULL,
                                      .takes_no_descriptors = scm_refuses(fd),
                                      .idle_max = options->idle_max,
                                      .request_max = options->request_max,
                                      .active_at = loop_now(loop)};
    list_init(&connection->place);
    task_init(&connection->task, options->work, deliver);
    loop_deferred_init(&connection->again, again);
    loop_deferred_init(&connection->closing, closed);
    timer_init(&connection->timer, timed);
    arm_timer(connection);
    r = loop_watch_fd(loop, &connection->watch, fd, POLLIN | POLLHUP, turn, connection);
    if (r < 0) {
        connection->fd = -1; /* still the caller's */
        connection_deinit(connection);
        return r;
    }
    if (options->counts)
        account_enter(account, &connection->place);
    connection->peer = *peer;
    *peer = (struct peer)PEER_NULL;
    return 0;
}

/* Whether another process has to shut the socket down, or close it after this one has done so. */
static bool shut_down(struct connection *connection)
{
    const usec_t now = loop_now(connection->loop);
    const struct toll toll = toll_begin(now);

    if (connection->costly)
        return false;
    (void)shutdown(connection->fd, SHUT_RDWR);
    return toll_end(toll, now, taker_owner_of_user(connection->peer.uid)) == TOLL_FINE;
}

/* Outside the loop if descriptors may be queued in it: closing those may block. */
static void close_socket(struct connection *connection)
{
    char byte;

    if (connection->fd < 0)
        return;
    /* io_uring may hold the socket a little longer; the client should see the end now. */
    if (!shut_down(connection))
        loop_close_elsewhere(connection->loop, TAKE_FD(connection->fd),
                             taker_owner_of_user(connection->peer.uid));
    else if (connection->takes_no_descriptors ||
             recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
        connection->fd = close_fd(connection->fd);
    else
        loop_close_owned(connection->loop, TAKE_FD(connection->fd),
                         taker_owner_of_user(connection->peer.uid));
}

void connection_deinit(struct connection *connection)
{
    loop_unwatch(connection->loop, &connection->watch);
    task_cancel(&connection->task);
    loop_undefer(&connection->again);
    loop_undefer(&connection->closing);
    timer_disarm(loop_timers(connection->loop), &connection->timer);
    account_leave(connection->account, &connection->place);
    if (connection->leaving)
        account_left(connection->account);
    peer_deinit(&connection->peer);
    free_in(connection);
    connection_free_out(connection);
    connection->account = account_put(connection->account);
    close_socket(connection);
    connection->dead = true;
}

void connection_attach(struct connection *connection)
{
    connection->attached = true;
    connection->idle_max = USEC_INFINITY;
    account_set_at_work(connection->account, &connection->place, true);
}

size_t connection_input_max(const struct connection *connection)
{
    return connection->account->may_change ? CONNECTION_INPUT_MAX : CONNECTION_STRANGER_INPUT_MAX;
}

void connection_next(struct connection *connection)
{
    set_busy(connection, false);
    connection->active_at = loop_now(connection->loop);
    if (!connection->dead)
        connection_update(connection);
}

void connection_finish(struct connection *connection)
{
    if (connection->dead || connection->finishing)
        return;
    connection->finishing = true;
    connection->active_at = loop_now(connection->loop);
    timer_arm(loop_timers(connection->loop), &connection->timer,
              usec_add(loop_now(connection->loop), CONNECTION_LINGER));
    connection_flush(connection);
    if (!connection->dead)
        connection_update(connection);
}

void connection_close(struct connection *connection)
{
    if (connection->dead)
        return;
    connection->dead = true;
    connection->leaving = account_begin_leave(connection->account, &connection->place);
    loop_unwatch(connection->loop, &connection->watch);
    loop_defer(connection->loop, &connection->closing);
}

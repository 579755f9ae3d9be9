/* SPDX-License-Identifier: MIT */
#include "supervisor/process/spawner.h"
#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bounds the requests in flight: the keeper clones one process at a time while the supervisor
 * prepares the next. */
#define UNANSWERED_MAX 16

#define REPLIES_PER_TURN 32

/* Room for some long environments. */
#define SEND_BUFFER ((int)(4 * MESSAGE_SIZE_MAX))

/* poll(2) does not report that the kernel has memory again. */
#define DRAIN_SLICE_MS 10

#define RETRY_AFTER (10 * USEC_PER_MSEC)

struct waiting {
    struct list link;
    uint64_t spawn_id;      /* the client's id; 0 = not a SPAWN */
    struct message message; /* allocated as far as `data` is used; owns its descriptors */
};

void spawner_forget(struct spawner *spawner, struct spawner_client *client)
{
    handle_table_remove(&spawner->clients, client->id);
    client->id = 0;
}

void spawner_pass_on(struct spawner *spawner, struct spawner_client *from,
                     struct spawner_client *to)
{
    handle_table_replace(&spawner->clients, from->id, to);
    to->id = from->id;
    from->id = 0;
}

static struct waiting *waiting_free(struct waiting *waiting)
{
    list_unlink(&waiting->link);
    message_close_fds(&waiting->message);
    free(waiting);
    return NULL;
}

/* Copies a message, with descriptors of its own: the caller closes the originals. */
static struct waiting *waiting_new(const struct message *message, uint64_t spawn_id)
{
    const size_t fixed = offsetof(struct waiting, message) + offsetof(struct message, data);
    struct waiting *waiting = malloc(fixed + message->size);
    if (!waiting)
        return NULL;
    list_init(&waiting->link);
    waiting->spawn_id = spawn_id;
    memcpy(&waiting->message, message, offsetof(struct message, data) + message->size);
    waiting->message.n_fds = 0;
    for (size_t i = 0; i < message->n_fds; i++) {
        int fd = fcntl(message->fds[i], F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
            return waiting_free(waiting);
        waiting->message.fds[waiting->message.n_fds++] = fd;
    }
    return waiting;
}

/* Waits until sending is possible again after error `r`. Returns 0 or -errno. */
static int expect_room(struct spawner *spawner, int r)
{
    if (r == -ENOBUFS) {
        timer_arm(loop_timers(spawner->loop), &spawner->retry,
                  usec_add(loop_now(spawner->loop), RETRY_AFTER));
        return 0;
    }
    return loop_watch_events(spawner->loop, &spawner->watch, POLLIN | POLLOUT);
}

static int send_or_keep(struct spawner *spawner, const struct message *message, uint64_t spawn_id)
{
    const bool first = list_empty(&spawner->waiting);
    int r = first ? message_send(spawner->fd, message) : -EAGAIN;
    if (r != -EAGAIN && r != -ENOBUFS)
        return r;
    struct waiting *waiting = waiting_new(message, spawn_id);
    if (!waiting)
        return -ENOMEM;
    r = first ? expect_room(spawner, r) : 0;
    if (r < 0) {
        waiting_free(waiting);
        return r;
    }
    list_push_back(&spawner->waiting, &waiting->link);
    return 0;
}

/* Too large for the stack. Two, because a client may send a request while it handles a reply. */
static struct message outgoing, incoming;

static void send_kill(struct spawner *spawner, uint64_t id, pid_t pid)
{
    message_begin(&outgoing, MESSAGE_KILL, id)->pid = pid;
    (void)send_or_keep(spawner, &outgoing, 0);
}

/* Handles the answer to a SPAWN or ADOPT request. Takes over the pidfd. Kills a process that was
 * given up in the meantime: to the keeper it is one that somebody wants. */
static void on_answer(struct spawner *spawner, uint64_t id, pid_t pid, int pidfd, int error)
{
    _cleanup_close_ int taken = pidfd;
    if (spawner->n_unanswered > 0)
        spawner->n_unanswered--;
    work_queue_hold(&spawner->starts, spawner->n_unanswered >= UNANSWERED_MAX);
    struct spawner_client *client = handle_table_get(&spawner->clients, id);
    if (!client) {
        if (error == 0)
            send_kill(spawner, id, pid);
        return;
    }
    if (error < 0)
        spawner_forget(spawner, client);
    client->handler->spawned(client, pid, TAKE_FD(taken), error);
}

static void on_lost_request(struct spawner *spawner, uint64_t spawn_id, int error)
{
    log_error("a request to the keeper is lost: %s", strerror(-error));
    if (spawn_id != 0)
        on_answer(spawner, spawn_id, 0, -1, error);
}

static void flush(struct spawner *spawner)
{
    /* On failure the loop calls once too often, and flush() tries again. */
    (void)loop_watch_events(spawner->loop, &spawner->watch, POLLIN);
    list_until_empty (waiting, &spawner->waiting, struct waiting, link) {
        const uint64_t spawn_id = waiting->spawn_id;
        int r = message_send(spawner->fd, &waiting->message);
        if ((r == -EAGAIN || r == -ENOBUFS) && expect_room(spawner, r) == 0)
            return;
        waiting_free(waiting);
        if (r < 0)
            on_lost_request(spawner, spawn_id, r);
    }
}

bool spawner_drain(struct spawner *spawner, usec_t timeout)
{
    const usec_t end = usec_add(clock_now(), timeout);
    struct pollfd room = {.fd = spawner->fd, .events = POLLOUT};

    while (!list_empty(&spawner->waiting) && clock_left(end) > 0) {
        (void)poll(&room, 1, DRAIN_SLICE_MS);
        flush(spawner);
    }
    return list_empty(&spawner->waiting);
}

static void spawner_on_retry(struct timer *timer, usec_t now)
{
    flush(list_entry(timer, struct spawner, retry));
}

static void count_request(struct spawner *spawner)
{
    spawner->n_unanswered++;
    work_queue_hold(&spawner->starts, spawner->n_unanswered >= UNANSWERED_MAX);
}

int spawner_request(struct spawner *spawner, struct spawner_client *client,
                    const struct spawn_options *options)
{
    if (!spawner->loop || spawner->fd < 0)
        return -ECONNREFUSED;
    int r = handle_table_add(&spawner->clients, client, &client->id);
    if (r < 0)
        return r;
    r = message_put_spawn(&outgoing, client->id, options);
    if (r == 0)
        r = send_or_keep(spawner, &outgoing, client->id);
    if (r < 0) {
        spawner_forget(spawner, client);
        return r;
    }
    count_request(spawner);
    return 0;
}

int spawner_adopt(struct spawner *spawner, const struct spawner_client *client, pid_t pid,
                  bool contained)
{
    struct message_record *record = message_begin(&outgoing, MESSAGE_ADOPT, client->id);
    record->pid = pid;
    record->contained = contained;
    int r = spawner->loop && spawner->fd >= 0 ? send_or_keep(spawner, &outgoing, client->id)
                                              : -ECONNREFUSED;
    if (r == 0)
        count_request(spawner);
    return r;
}

int spawner_register(struct spawner *spawner, struct spawner_client *client)
{
    return handle_table_add(&spawner->clients, client, &client->id);
}

int spawner_send(struct spawner *spawner, const struct message *message)
{
    if (!spawner->loop || spawner->fd < 0)
        return -ECONNREFUSED;
    return send_or_keep(spawner, message, 0);
}

void spawner_tell(struct spawner *spawner, enum message_kind kind)
{
    (void)message_begin(&outgoing, kind, 0);
    (void)spawner_send(spawner, &outgoing);
}

void spawner_kill(struct spawner *spawner, const struct spawner_client *client, pid_t pid)
{
    if (client->id == 0 || pid <= 0)
        return;
    send_kill(spawner, client->id, pid);
}

void spawner_spare(struct spawner *spawner, uint64_t id, pid_t pid, bool spared)
{
    struct message_record *record = message_begin(&outgoing, MESSAGE_SPARE, id);

    record->pid = pid;
    record->spared = spared;
    (void)send_or_keep(spawner, &outgoing, 0);
}

static void on_spawned(struct spawner *spawner, const struct message_record *reply)
{
    int pidfd = -1;
    if (incoming.n_fds == 1) {
        pidfd = incoming.fds[0];
        incoming.n_fds = 0;
    }
    on_answer(spawner, reply->id, reply->pid, pidfd, reply->error);
}

static void on_exited(struct spawner *spawner, const struct message_record *reply)
{
    struct spawner_client *client = handle_table_get(&spawner->clients, reply->id);
    if (!client)
        return;
    spawner_forget(spawner, client);
    client->handler->exited(client, &reply->how);
}

static void spawner_on_ready(void *userdata, uint32_t events)
{
    struct spawner *spawner = userdata;
    if (events & POLLOUT)
        flush(spawner);
    for (int i = 0; i < REPLIES_PER_TURN; i++) {
        int r = message_receive(spawner->fd, &incoming);
        if (r == -EPIPE)
            spawner->keeper_lost(spawner);
        if (r < 0 && r != -EMFILE)
            return;
        switch (message_kind_of(&incoming)) {
        case MESSAGE_SPAWNED:
            on_spawned(spawner, &incoming.record);
            break;
        case MESSAGE_EXITED:
            on_exited(spawner, &incoming.record);
            break;
        default:
            log_error("the keeper sent an unknown reply");
        }
        message_close_fds(&incoming);
    }
}

int spawner_init(struct spawner *spawner, struct loop *loop, int fd)
{
    const int size = SEND_BUFFER;
    *spawner = (struct spawner){.loop = loop, .fd = fd};
    work_queue_init(&spawner->starts, loop);
    spawner->starts.prompt = true;
    list_init(&spawner->waiting);
    timer_init(&spawner->retry, spawner_on_retry);
    if (fd < 0)
        return 0;
    /* Without the privilege to exceed the system's limit, a long request waits for an empty
     * channel. */
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    return loop_watch_fd(loop, &spawner->watch, fd, POLLIN, spawner_on_ready, spawner);
}

void spawner_deinit(struct spawner *spawner)
{
    if (!spawner->loop)
        return;
    work_queue_deinit(&spawner->starts);
    loop_unwatch(spawner->loop, &spawner->watch);
    timer_disarm(loop_timers(spawner->loop), &spawner->retry);
    list_for_each_entry_safe (waiting, &spawner->waiting, struct waiting, link)
        waiting_free(waiting);
    spawner->fd = close_fd(spawner->fd);
    handle_table_deinit(&spawner->clients);
    spawner->loop = NULL;
}

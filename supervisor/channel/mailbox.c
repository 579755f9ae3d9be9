/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/mailbox-private.h"

#include "shared/cleanup.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Records that are shown together at most. */
#define MAILBOX_LATE_MAX 32

#define mailbox_of(pointer, member) list_entry(pointer, struct mailbox, member)

static void mailbox_wake_peer(struct channel *channel, const _Atomic uint32_t *word)
{
    struct mailbox *mailbox = mailbox_of(channel, channel);

    if (channel->backend == WAKE_FUTEX)
        loop_wake_word(mailbox->loop, word);
    else
        loop_wake_eventfd(mailbox->loop, channel->wake_fd);
}

static void mailbox_publish(struct loop_deferred *deferred)
{
    struct mailbox *mailbox = mailbox_of(deferred, publish);

    mailbox->n_late = 0;
    channel_publish(&mailbox->channel);
    loop_told(mailbox->loop, &mailbox->hot);
}

void mailbox_break(struct mailbox *mailbox, const char *what)
{
    if (mailbox->dead)
        return;
    mailbox->dead = true;
    loop_unwatch(mailbox->loop, &mailbox->tail_watch);
    loop_unwatch(mailbox->loop, &mailbox->head_watch);
    loop_unheat(mailbox->loop, &mailbox->hot);
    loop_undefer(&mailbox->read_ahead);
    mailbox->handler->broken(mailbox, what);
}

void mailbox_heat(struct mailbox *mailbox)
{
    /* Armed again when it cools. The eventfd's watch lasts as long as the mailbox. */
    if (mailbox->channel.backend == WAKE_FUTEX)
        loop_unwatch(mailbox->loop, &mailbox->tail_watch);
    channel_end_sleep(&mailbox->channel);
    loop_heat(mailbox->loop, &mailbox->hot);
}

/* The next record to its handler. 0, positive = no more now, or negative: `*ret_what` was broken.
 */
static int mailbox_read_one(struct mailbox *mailbox, const char **ret_what)
{
    const uint32_t head = mailbox->channel.in.head;
    struct ring_record record;
    int r;

    r = ring_next(&mailbox->channel.in, &record);
    if (r < 0) {
        *ret_what = "ring cursor or record length out of range";
        return r;
    }
    if (r != 0)
        return r;
    if (mailbox_is_passed(mailbox, record.kind))
        return 0;
    mailbox->reading = true;
    r = mailbox->handler->record(mailbox, &record);
    mailbox->reading = false;
    if (r == MAILBOX_E_FULL && mailbox->draining)
        return 0; /* the answer for which there is no room would reach nobody */
    if (r == MAILBOX_E_FULL) {
        mailbox->channel.in.head = head;
        mailbox->suspended = true;
    }
    if (r < 0)
        *ret_what = "record that makes no sense";
    return r;
}

/* The one place that ends waiting for room, whatever it was that told of it. */
static void mailbox_space_came(struct mailbox *mailbox)
{
    loop_unwatch(mailbox->loop, &mailbox->head_watch);
    channel_end_block(&mailbox->channel);
    mailbox->wants_space = mailbox->space_due = false;
    mailbox->handler->space(mailbox);
}

static bool mailbox_poll(struct loop_hot *hot)
{
    struct mailbox *mailbox = mailbox_of(hot, hot);
    const char *what = NULL;
    unsigned n;
    int r = 0;

    mailbox->batch_ended = false;
    for (n = 0; n < MAILBOX_BATCH && !mailbox->suspended && !mailbox->dead; n++) {
        if (mailbox->batch_ended)
            break;
        r = mailbox_read_one(mailbox, &what);
        if (r != 0)
            break;
    }
    channel_release(&mailbox->channel);
    if (r < 0) {
        mailbox_break(mailbox, what);
        return true;
    }
    if (mailbox->suspended && mailbox->handler->look && mailbox_read_urgent(mailbox))
        n++;
    if (mailbox->wants_space && mailbox->checking)
        (void)mailbox_advance(mailbox);
    if (mailbox->wants_space && mailbox->space_due && !mailbox->dead)
        mailbox_space_came(mailbox);
    return n > 0;
}

static void mailbox_on_tail(void *userdata, uint32_t events)
{
    struct mailbox *mailbox = userdata;

    if (events & POLLERR) {
        mailbox_break(mailbox, "eventfd that cannot be read any more");
        return;
    }
    mailbox_heat(mailbox);
    /* One eventfd tells of data and of space alike. */
    if (mailbox->channel.backend == WAKE_EVENTFD && mailbox->wants_space)
        mailbox_space_came(mailbox);
}

/* As channel_prepare_sleep(), for one that is suspended and looks at what comes behind. */
static bool mailbox_prepare_look(struct mailbox *mailbox, uint32_t *ret_expected)
{
    const struct memory_header *theirs = mailbox->channel.theirs.header;

    *ret_expected = mailbox_urgent_end(mailbox);
    /* Partners: the load in the peer's channel_publish(), and ring_publish(). */
    atomic_store_explicit(&mailbox->channel.mine.header->sleeping, 1, memory_order_relaxed);
    wake_fence();
    if (atomic_load_explicit(&theirs->tail, memory_order_acquire) == *ret_expected)
        return true;
    channel_end_sleep(&mailbox->channel);
    return false;
}

static bool mailbox_cool(struct loop_hot *hot)
{
    struct mailbox *mailbox = mailbox_of(hot, hot);
    uint32_t expected;
    int r;

    if (mailbox->suspended && (!mailbox->handler->look || mailbox->urgent_waits))
        return true;
    if (!(mailbox->suspended ? mailbox_prepare_look(mailbox, &expected)
                             : channel_prepare_sleep(&mailbox->channel, &expected)))
        return false;
    if (mailbox->channel.backend == WAKE_EVENTFD)
        return true;
    r = loop_watch_word(mailbox->loop, &mailbox->tail_watch, &mailbox->channel.theirs.header->tail,
                        expected, mailbox_on_tail, mailbox);
    if (r < 0) {
        /* Out of memory: polling on costs time, sleeping unarmed would cost the worker. */
        channel_end_sleep(&mailbox->channel);
        return false;
    }
    return true;
}

int mailbox_init(struct mailbox *mailbox, struct loop *loop, const struct mailbox_options *options,
                 const struct mailbox_handler *handler, struct mailbox_fds *ret_fds)
{
    const struct channel_options channel_options = {
        .ring_size = options->ring_size,
        .inline_max = options->inline_max,
        .spin_usec = options->spin_usec,
        .backend = loop_wake_backend(loop),
    };
    int sockets[2], r;

    *mailbox = (struct mailbox){.loop = loop, .handler = handler, .control = -1};
    loop_hot_init(&mailbox->hot, mailbox_poll, mailbox_cool);
    loop_deferred_init(&mailbox->publish, mailbox_publish);
    loop_deferred_init(&mailbox->read_ahead, mailbox_on_read_ahead);
    r = channel_create(&mailbox->channel, &channel_options, &ret_fds->channel);
    if (r < 0)
        return r;
    mailbox->channel.wake = mailbox_wake_peer;
    mailbox->channel.out.shared_head = &mailbox->gate;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) < 0) {
        r = -errno;
        channel_deinit(&mailbox->channel);
        return r;
    }
    mailbox->control = sockets[0];
    if (options->blobs) {
        mailbox->blobs = options->blobs;
        mailbox->blobs->references++;
    }
    ret_fds->control = sockets[1];
    return 0;
}

void mailbox_forget_fds(struct mailbox *mailbox, struct mailbox_fds *fds)
{
    fds->control = close_fd(fds->control);
    channel_close_fds(&mailbox->channel);
}

/* A peer that filled its eventfd has the kernel's threads wait in our writes: they may go home now.
 */
static void mailbox_empty_eventfd(const struct mailbox *mailbox)
{
    uint64_t count;
    struct iovec into = {.iov_base = &count, .iov_len = sizeof(count)};

    if (mailbox->channel.wake_fd >= 0 &&
        preadv2(mailbox->channel.wake_fd, &into, 1, -1, RWF_NOWAIT) < 0)
        return; /* nobody waits: it was empty */
}

void mailbox_deinit(struct mailbox *mailbox)
{
    mailbox->dead = true;
    loop_unwatch(mailbox->loop, &mailbox->tail_watch);
    loop_unwatch(mailbox->loop, &mailbox->head_watch);
    loop_unheat(mailbox->loop, &mailbox->hot);
    loop_undefer(&mailbox->publish);
    loop_undefer(&mailbox->read_ahead);
    mailbox_empty_eventfd(mailbox);
    channel_deinit(&mailbox->channel);
    loop_close(mailbox->loop, TAKE_FD(mailbox->control));
    mailbox->blobs = blob_share_unref(mailbox->blobs);
}

int mailbox_open(struct mailbox *mailbox)
{
    int r;

    if (mailbox->channel.backend == WAKE_EVENTFD) {
        r = loop_watch_eventfd(mailbox->loop, &mailbox->tail_watch, mailbox->channel.wait_fd,
                               mailbox_on_tail, mailbox);
        if (r < 0)
            return r;
    }
    if (!mailbox_cool(&mailbox->hot))
        loop_heat(mailbox->loop, &mailbox->hot);
    return 0;
}

void mailbox_drain(struct mailbox *mailbox)
{
    const char *what;

    mailbox->draining = true;
    while (!mailbox->dead && mailbox_read_one(mailbox, &what) == 0)
        ;
    mailbox->dead = true;
}

bool mailbox_catch_up(struct mailbox *mailbox)
{
    const bool found = !mailbox->dead && !mailbox->reading && mailbox_poll(&mailbox->hot);

    if (mailbox->dead)
        return false;
    if (found)
        mailbox_heat(mailbox);
    return !mailbox->suspended && ring_pending(&mailbox->channel.in);
}

void mailbox_end_batch(struct mailbox *mailbox)
{
    mailbox->batch_ended = true;
}

void mailbox_resume(struct mailbox *mailbox)
{
    if (!mailbox->suspended)
        return;
    mailbox->suspended = mailbox->urgent_waits = false;
    if (!mailbox->dead)
        mailbox_heat(mailbox);
}

static void mailbox_on_space(void *userdata, uint32_t events)
{
    (void)events;
    mailbox_space_came(userdata);
}

/* Waiting that could not be armed would be a hang that nobody notices: better to lose the peer. */
static int mailbox_cannot_wait(struct mailbox *mailbox)
{
    mailbox_break(mailbox, "cannot be waited for: out of memory");
    return -EPROTO;
}

static int mailbox_await_space(struct mailbox *mailbox)
{
    const uint32_t expected = atomic_load_explicit(&mailbox->gate, memory_order_relaxed);

    /* What was seen but must not be believed yet comes with the peer's ring: mailbox_poll(). */
    if (mailbox->head_watch.id == 0 && mailbox->channel.backend == WAKE_FUTEX &&
        !mailbox->checking &&
        loop_watch_word(mailbox->loop, &mailbox->head_watch, &mailbox->channel.theirs.header->head,
                        expected, mailbox_on_space, mailbox) < 0)
        return mailbox_cannot_wait(mailbox);
    mailbox->wants_space = true;
    return MAILBOX_E_FULL;
}

int mailbox_await_socket(struct mailbox *mailbox)
{
    if (!mailbox->wants_space &&
        loop_watch_fd(mailbox->loop, &mailbox->head_watch, mailbox->control, POLLOUT,
                      mailbox_on_space, mailbox) < 0)
        return mailbox_cannot_wait(mailbox);
    mailbox->wants_space = true;
    return MAILBOX_E_FULL;
}

bool mailbox_await(struct mailbox *mailbox)
{
    if (mailbox->dead || mailbox_advance(mailbox))
        return false;
    if (mailbox->wants_space && (mailbox->checking || mailbox->head_watch.id != 0 ||
                                 mailbox->channel.backend == WAKE_EVENTFD))
        return true;
    /* Nobody makes room by consuming what was never shown. */
    channel_publish(&mailbox->channel);
    /* Partner: the load in the peer's channel_release(). */
    atomic_store_explicit(&mailbox->channel.mine.header->blocked, 1, memory_order_relaxed);
    wake_fence();
    if (mailbox_advance(mailbox)) {
        if (!mailbox->wants_space)
            channel_end_block(&mailbox->channel);
        return false;
    }
    return !mailbox->dead && mailbox_await_space(mailbox) == MAILBOX_E_FULL;
}

int mailbox_reserve(struct mailbox *mailbox, uint32_t size, void **ret)
{
    int r;

    if (mailbox->dead)
        return -EPROTO;
    for (;;) {
        r = ring_reserve(&mailbox->channel.out, size, ret);
        if (r != RING_E_FULL)
            return r;
        if (mailbox_await(mailbox))
            return MAILBOX_E_FULL;
        if (mailbox->dead)
            return -EPROTO;
    }
}

void mailbox_commit(struct mailbox *mailbox, uint16_t kind, uint32_t size)
{
    ring_commit(&mailbox->channel.out, kind, size);
    loop_defer(mailbox->loop, &mailbox->publish);
}

void mailbox_commit_of_many(struct mailbox *mailbox, uint16_t kind, uint32_t size, unsigned more)
{
    ring_commit(&mailbox->channel.out, kind, size);
    mailbox->n_late++;
    if (mailbox->n_late >= more || mailbox->n_late >= MAILBOX_LATE_MAX)
        loop_defer(mailbox->loop, &mailbox->publish);
    else
        loop_defer_late(mailbox->loop, &mailbox->publish);
}

void mailbox_mark(struct mailbox *mailbox, uint64_t handle)
{
    /* Pairs with the acquire load in the worker's troupe_job_is_cancelled(). */
    atomic_store_explicit(&mailbox->channel.mine.header->mark, handle, memory_order_release);
}

void mailbox_set_control(struct mailbox *mailbox, uint32_t bits)
{
    _Atomic uint32_t *word = &mailbox->channel.mine.header->control;

    /* Pairs with the acquire load in the worker's loop, before each message. */
    atomic_store_explicit(word, bits, memory_order_release);
    mailbox_wake_peer(&mailbox->channel, word);
}

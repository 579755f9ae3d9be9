/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/endpoint-private.h"

#include "shared/base/cleanup.h"
#include "supervisor/loop/toll.h"
#include <errno.h>
#include <poll.h>

/* Bounds the records that are published together. */
#define ENDPOINT_LATE_MAX 32
/* Records of a dead peer: about a millisecond. */
#define DRAINED_PER_TURN 1024u

#define endpoint_of(pointer, member) list_entry(pointer, struct endpoint, member)

static void endpoint_wake_peer(struct channel *channel, const _Atomic uint32_t *word)
{
    struct endpoint *endpoint = endpoint_of(channel, channel);

    if (word && channel->backend == WAKE_FUTEX)
        loop_wake_word(endpoint->loop, word);
    else
        loop_wake_socket(endpoint->loop, channel->wake_fd);
}

static void endpoint_publish(struct loop_deferred *deferred)
{
    struct endpoint *endpoint = endpoint_of(deferred, publish);

    endpoint->n_late = 0;
    channel_publish(&endpoint->channel);
    loop_told(endpoint->loop, &endpoint->hot);
}

void endpoint_break(struct endpoint *endpoint, const char *what)
{
    if (endpoint->dead)
        return;
    endpoint->dead = true;
    loop_unwatch(endpoint->loop, &endpoint->tail_watch);
    loop_unwatch(endpoint->loop, &endpoint->head_watch);
    loop_unheat(endpoint->loop, &endpoint->hot);
    loop_undefer(&endpoint->read_ahead);
    endpoint->handler->broken(endpoint, what);
}

void endpoint_heat(struct endpoint *endpoint)
{
    /* Armed again when it cools. The eventfd's watch lasts as long as the endpoint. */
    if (endpoint->channel.backend == WAKE_FUTEX)
        loop_unwatch(endpoint->loop, &endpoint->tail_watch);
    channel_end_sleep(&endpoint->channel);
    loop_heat(endpoint->loop, &endpoint->hot);
}

/* Returns whether all records are read that the peer had published when it was gone. A process that
 * shares its rings may publish more, without end. */
static bool endpoint_is_drained(const struct endpoint *endpoint)
{
    return endpoint->draining && (int32_t)(endpoint->channel.in.head - endpoint->end) >= 0;
}

/* Passes the next record to the handler. Returns 0, positive if there is none now, or negative with
 * the violation in `*ret_what`. */
static int endpoint_read_one(struct endpoint *endpoint, const char **ret_what)
{
    const uint32_t head = endpoint->channel.in.head;
    struct ring_record record;
    int r =
        endpoint_is_drained(endpoint) ? RING_E_EMPTY : ring_next(&endpoint->channel.in, &record);

    if (r < 0) {
        *ret_what = "ring cursor or record length out of range";
        return r;
    }
    if (r != 0)
        return r;
    if (endpoint_is_passed(endpoint, record.kind))
        return 0;
    endpoint->reading = true;
    r = endpoint->handler->record(endpoint, &record);
    endpoint->reading = false;
    if (r == ENDPOINT_E_FULL && endpoint->draining)
        return 0; /* the answer would not be read */
    if (r == ENDPOINT_E_FULL || r == ENDPOINT_E_BLOB || r == ENDPOINT_E_LATER) {
        endpoint->channel.in.head = head;
        endpoint->suspended = true;
    }
    if (r == ENDPOINT_E_MORE) {
        endpoint->channel.in.head = head;
        endpoint->batch_ended = true;
    }
    if (r < 0)
        *ret_what = "record that makes no sense";
    return r;
}

/* Ends every wait for room. */
static void endpoint_space_came(struct endpoint *endpoint)
{
    loop_unwatch(endpoint->loop, &endpoint->head_watch);
    channel_end_block(&endpoint->channel);
    endpoint->wants_space = endpoint->space_due = false;
    endpoint->handler->space(endpoint);
}

/* Whether the peer says that it crashes, and its owner does not know yet. */
static bool endpoint_sees_crash(const struct endpoint *endpoint)
{
    /* Partner: the store in the signal handler of libtroupe. */
    return !endpoint->crashing && endpoint->handler->crashing &&
           atomic_load_explicit(&endpoint->channel.theirs.header->crashed, memory_order_acquire);
}

static bool endpoint_poll(struct loop_hot *hot)
{
    struct endpoint *endpoint = endpoint_of(hot, hot);
    const char *what = NULL;
    unsigned n;
    int r = 0;

    if (endpoint_sees_crash(endpoint)) {
        endpoint->crashing = true;
        endpoint->handler->crashing(endpoint);
    }
    endpoint->batch_ended = false;
    for (n = 0; n < ENDPOINT_BATCH && !endpoint->suspended && !endpoint->dead; n++) {
        if (endpoint->batch_ended)
            break;
        r = endpoint_read_one(endpoint, &what);
        if (r != 0)
            break;
    }
    channel_release(&endpoint->channel);
    if (r < 0) {
        endpoint_break(endpoint, what);
        return true;
    }
    if (endpoint->suspended && endpoint->handler->look && endpoint_read_urgent(endpoint))
        n++;
    if (endpoint->wants_space && endpoint->checking)
        (void)endpoint_advance(endpoint);
    if (endpoint->wants_space && endpoint->space_due && !endpoint->dead)
        endpoint_space_came(endpoint);
    return n > 0 || endpoint->batch_ended;
}

static void endpoint_on_tail(void *userdata, uint32_t events)
{
    struct endpoint *endpoint = userdata;

    if (events & POLLERR) {
        endpoint_break(endpoint, "eventfd that can no longer be read");
        return;
    }
    endpoint_heat(endpoint);
    /* The eventfd stands for data and for space. */
    if (endpoint->channel.backend == WAKE_EVENTFD && endpoint->wants_space)
        endpoint_space_came(endpoint);
}

/* Like channel_prepare_sleep(), but while suspended: waits for records behind the waiting one. */
static bool endpoint_prepare_look(struct endpoint *endpoint, uint32_t *ret_expected)
{
    const struct channel *channel = &endpoint->channel;

    /* Partners: as in channel_prepare_sleep(), and ring_publish(). */
    *ret_expected = atomic_load_explicit(&channel->their_words->bell, memory_order_acquire);
    atomic_store_explicit(&channel->words->sleeping, MEMORY_SLEEPS, memory_order_relaxed);
    wake_fence();
    if (atomic_load_explicit(&channel->theirs.header->tail, memory_order_acquire) ==
        endpoint_urgent_end(endpoint))
        return true;
    channel_end_sleep(&endpoint->channel);
    return false;
}

static bool endpoint_cool(struct loop_hot *hot)
{
    struct endpoint *endpoint = endpoint_of(hot, hot);
    uint32_t expected;
    int r;

    if (endpoint->suspended && (!endpoint->handler->look || endpoint->urgent_waits))
        return true;
    if (!(endpoint->suspended ? endpoint_prepare_look(endpoint, &expected)
                              : channel_prepare_sleep(&endpoint->channel, &expected)))
        return false;
    if (endpoint_sees_crash(endpoint)) {
        channel_end_sleep(&endpoint->channel);
        return false;
    }
    if (endpoint->channel.backend == WAKE_EVENTFD)
        return true;
    r = loop_watch_word(endpoint->loop, &endpoint->tail_watch, &endpoint->channel.their_words->bell,
                        expected, endpoint_on_tail, endpoint);
    if (r < 0) {
        /* Out of memory: keep polling, since an unarmed sleep would never end. */
        channel_end_sleep(&endpoint->channel);
        return false;
    }
    return true;
}

/* Reads the record again whose blob has come. */
static void endpoint_on_blob(struct taker_receipt *receipt)
{
    struct endpoint *endpoint = endpoint_of(receipt, receipt);

    endpoint_resume(endpoint);
    if (endpoint->draining && endpoint->handler->drainable)
        endpoint->handler->drainable(endpoint);
}

int endpoint_init(struct endpoint *endpoint, struct loop *loop,
                  const struct endpoint_options *options, const struct endpoint_handler *handler,
                  struct endpoint_fds *ret_fds)
{
    struct endpoint_stock made;
    int r;

    /* Otherwise each further peer could leave one more socket that nothing can close. */
    if (options->blobs && taker_is_full(options->blobs->owner))
        return -EUSERS;
    if (options->blobs && toll_bars(options->blobs->owner, loop_now(loop)))
        return -EBUSY;
    r = endpoint_stock_take(loop, options, &made);
    if (r < 0)
        return r;
    endpoint_set_up(endpoint, loop, handler, &made.channel, made.control[0], options->blobs);
    *ret_fds = made.fds;
    return 0;
}

void endpoint_set_up(struct endpoint *endpoint, struct loop *loop,
                     const struct endpoint_handler *handler, const struct channel *channel,
                     int control, struct blob_share *blobs)
{
    *endpoint = (struct endpoint){
        .loop = loop, .handler = handler, .channel = *channel, .control = control};
    loop_hot_init(&endpoint->hot, endpoint_poll, endpoint_cool);
    loop_deferred_init(&endpoint->publish, endpoint_publish);
    loop_deferred_init(&endpoint->read_ahead, endpoint_on_read_ahead);
    task_init(&endpoint->announcement, NULL, endpoint_on_announcement);
    endpoint->channel.wake = endpoint_wake_peer;
    endpoint->gate = &endpoint->channel.mine.header->gate;
    endpoint->channel.out.shared_head = endpoint->gate;
    taker_receipt_init(&endpoint->receipt, endpoint_on_blob);
    endpoint->blobs = blobs;
    if (blobs)
        blobs->references++;
}

void endpoint_close_memories(struct endpoint *endpoint)
{
    channel_close_fds(&endpoint->channel);
}

void endpoint_forget_fds(struct endpoint *endpoint, struct endpoint_fds *fds)
{
    fds->control = close_fd(fds->control);
    endpoint_close_memories(endpoint);
}

/* Deferred, since munmap() takes as long as all other work between a worker's death and its
 * successor's start. */
static void endpoint_unmap(struct endpoint *endpoint, struct memory *memory)
{
    loop_unmap(endpoint->loop, memory->header, memory->size);
    memory->header = NULL;
}

void endpoint_deinit(struct endpoint *endpoint)
{
    endpoint->dead = true;
    loop_unwatch(endpoint->loop, &endpoint->tail_watch);
    loop_unwatch(endpoint->loop, &endpoint->head_watch);
    loop_unwatch(endpoint->loop, &endpoint->hand_over_watch);
    loop_unheat(endpoint->loop, &endpoint->hot);
    loop_undefer(&endpoint->publish);
    loop_undefer(&endpoint->read_ahead);
    if (endpoint->announcement.queue)
        task_cancel(&endpoint->announcement);
    endpoint_unmap(endpoint, &endpoint->channel.mine);
    endpoint_unmap(endpoint, &endpoint->channel.theirs);
    channel_deinit(&endpoint->channel);
    taker_cancel(&endpoint->receipt);
    if (endpoint->costly)
        loop_close_elsewhere(endpoint->loop, TAKE_FD(endpoint->control), endpoint_owner(endpoint));
    else
        loop_close_owned(endpoint->loop, TAKE_FD(endpoint->control), endpoint_owner(endpoint));
    endpoint->blobs = blob_share_unref(endpoint->blobs);
}

int endpoint_open(struct endpoint *endpoint)
{
    int r;

    if (endpoint->channel.backend == WAKE_EVENTFD) {
        r = loop_watch_eventfd(endpoint->loop, &endpoint->tail_watch, endpoint->channel.wait_fd,
                               endpoint_on_tail, endpoint);
        if (r < 0)
            return r;
    }
    if (!endpoint_cool(&endpoint->hot))
        loop_heat(endpoint->loop, &endpoint->hot);
    return 0;
}

void endpoint_begin_drain(struct endpoint *endpoint)
{
    const struct ring_consumer *in = &endpoint->channel.in;

    endpoint->draining = true;
    if (endpoint->gone)
        endpoint->dead = false; /* what it had published counts */
    endpoint->end =
        atomic_load_explicit(&endpoint->channel.theirs.header->tail, memory_order_acquire);
    if (endpoint->end - in->head > in->size)
        endpoint->end = in->tail; /* a wild cursor, which may make sense again afterwards */
    endpoint->suspended = endpoint->urgent_waits = false;
}

bool endpoint_drain(struct endpoint *endpoint)
{
    const char *what;
    unsigned n = 0;
    int r = 0;

    if (!endpoint->draining)
        endpoint_begin_drain(endpoint);
    endpoint->batch_ended = false;
    while (r == 0 && !endpoint->dead && !endpoint->suspended && !endpoint->batch_ended &&
           n++ < DRAINED_PER_TURN)
        r = endpoint_read_one(endpoint, &what);
    if (endpoint->suspended && !endpoint->dead)
        return false;
    if (!endpoint->dead && (r == 0 || r == ENDPOINT_E_MORE)) {
        endpoint->handler->drainable(endpoint);
        return false;
    }
    endpoint->dead = true;
    return true;
}

bool endpoint_catch_up(struct endpoint *endpoint)
{
    const bool found = !endpoint->dead && !endpoint->reading && endpoint_poll(&endpoint->hot);

    if (endpoint->dead)
        return false;
    if (found)
        endpoint_heat(endpoint);
    return !endpoint->suspended && !endpoint_is_drained(endpoint) &&
           ring_pending(&endpoint->channel.in);
}

void endpoint_end_batch(struct endpoint *endpoint)
{
    endpoint->batch_ended = true;
}

void endpoint_resume(struct endpoint *endpoint)
{
    if (!endpoint->suspended)
        return;
    endpoint->suspended = endpoint->urgent_waits = false;
    if (!endpoint->dead)
        endpoint_heat(endpoint);
}

static void endpoint_on_space(void *userdata, uint32_t events)
{
    endpoint_space_came(userdata);
}

/* Breaks the connection: a wait that cannot be armed would never end. */
static int endpoint_cannot_wait(struct endpoint *endpoint)
{
    endpoint_break(endpoint, "cannot be waited for: out of memory");
    return -EPROTO;
}

static int endpoint_await_space(struct endpoint *endpoint)
{
    const uint32_t expected = atomic_load_explicit(endpoint->gate, memory_order_relaxed);

    /* While `checking`, endpoint_poll() advances the gate. */
    if (endpoint->head_watch.id == 0 && endpoint->channel.backend == WAKE_FUTEX &&
        !endpoint->checking &&
        loop_watch_word(endpoint->loop, &endpoint->head_watch, &endpoint->channel.their_words->head,
                        expected, endpoint_on_space, endpoint) < 0)
        return endpoint_cannot_wait(endpoint);
    endpoint->wants_space = true;
    return ENDPOINT_E_FULL;
}

int endpoint_await_socket(struct endpoint *endpoint)
{
    if (!endpoint->wants_space &&
        loop_watch_fd(endpoint->loop, &endpoint->head_watch, endpoint->control, POLLOUT,
                      endpoint_on_space, endpoint) < 0)
        return endpoint_cannot_wait(endpoint);
    endpoint->wants_space = true;
    return ENDPOINT_E_FULL;
}

bool endpoint_await(struct endpoint *endpoint)
{
    if (endpoint->dead || endpoint_advance(endpoint))
        return false;
    if (endpoint->wants_space && (endpoint->checking || endpoint->head_watch.id != 0 ||
                                  endpoint->channel.backend == WAKE_EVENTFD))
        return true;
    /* The peer can only consume published records. Deferred: the effect of another peer's request
     * must not be visible here before that request is released, or a supervisor after a crash would
     * repeat it. */
    loop_defer(endpoint->loop, &endpoint->publish);
    /* Partner: the load in the peer's channel_release(). */
    atomic_store_explicit(&endpoint->channel.words->blocked, 1, memory_order_relaxed);
    wake_fence();
    if (endpoint_advance(endpoint)) {
        if (!endpoint->wants_space)
            channel_end_block(&endpoint->channel);
        return false;
    }
    return !endpoint->dead && endpoint_await_space(endpoint) == ENDPOINT_E_FULL;
}

int endpoint_reserve(struct endpoint *endpoint, uint32_t size, void **ret)
{
    int r;

    if (endpoint->dead)
        return -EPROTO;
    for (;;) {
        r = ring_reserve(&endpoint->channel.out, size, ret);
        if (r != RING_E_FULL)
            return r;
        if (endpoint_await(endpoint))
            return ENDPOINT_E_FULL;
        if (endpoint->dead)
            return -EPROTO;
    }
}

void endpoint_commit(struct endpoint *endpoint, uint16_t kind, uint32_t size)
{
    ring_commit(&endpoint->channel.out, kind, size);
    loop_defer(endpoint->loop, &endpoint->publish);
}

void endpoint_flush(struct endpoint *endpoint)
{
    loop_undefer(&endpoint->publish);
    endpoint_publish(&endpoint->publish);
}

void endpoint_commit_of_many(struct endpoint *endpoint, uint16_t kind, uint32_t size, unsigned more)
{
    ring_commit(&endpoint->channel.out, kind, size);
    endpoint->n_late++;
    if (endpoint->n_late >= more || endpoint->n_late >= ENDPOINT_LATE_MAX)
        loop_defer(endpoint->loop, &endpoint->publish);
    else
        loop_defer_late(endpoint->loop, &endpoint->publish);
}

void endpoint_mark(struct endpoint *endpoint, uint64_t handle)
{
    /* Partner: the acquire load in the worker's troupe_job_is_cancelled(). */
    atomic_store_explicit(&endpoint->channel.words->mark, handle, memory_order_release);
}

void endpoint_set_control(struct endpoint *endpoint, uint32_t bits)
{
    struct memory_words *words = endpoint->channel.words;
    const _Atomic uint32_t *word = &words->bell;

    /* Partner: the acquire load in the worker's loop, before each message. */
    atomic_store_explicit(&words->control, bits, memory_order_release);
    /* Partner: the fence in the peer's channel_wait() or channel_arm(), after which it reads the
     * word again. */
    wake_fence();
    (void)atomic_fetch_add_explicit(&words->bell, 1, memory_order_release);
    if (atomic_load_explicit(&endpoint->channel.their_words->sleeping, memory_order_relaxed) ==
        MEMORY_SLEEPS_EVENTFD)
        word = NULL;
    endpoint_wake_peer(&endpoint->channel, word);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/endpoint-adopt.h"
#include "tests/unit/fake-peer.h"
#include "tests/unit/suite.h"
#include "worker/base/carrier.h"
#include <pthread.h>

/*
 * A supervisor crashes, and the next one takes over: the peer is the library's, in this process on
 * descriptors of its own, and so are the descriptors that the keeper would hold. Every test runs
 * with both back ends.
 */

#define RING_SIZE UINT32_C(4096)
#define KIND      5

static struct loop *loop;
static struct endpoint endpoint;
static struct carrier peer;
static int held[ENDPOINT_HELD_FDS];
static size_t n_held;
static unsigned n_records, n_broken, n_consumed, n_restarted;
static uint64_t last_value, read_before;
static int take_result;
static bool takes;

static int on_record(struct endpoint *self, const struct ring_record *record)
{
    struct payload payload = PAYLOAD_NULL;

    n_records++;
    memcpy(&last_value, record->body, sizeof(last_value));
    if (!takes)
        return 0;
    take_result = endpoint_take(
        self, &(struct payload_wire){.form = PAYLOAD_BLOB, .size = 3, .serial = last_value},
        &payload);
    payload_deinit(&payload);
    return 0;
}

static void on_space(struct endpoint *self)
{
}

static void on_consumed(struct endpoint *self, const struct ring_record *record, uint32_t cursor)
{
    n_consumed++;
}

static void on_broken(struct endpoint *self, const char *what)
{
    ck_assert_ptr_nonnull(what);
    n_broken++;
}

static const struct endpoint_handler HANDLER = {
    .record = on_record,
    .space = on_space,
    .consumed = on_consumed,
    .broken = on_broken,
};

static void on_restarted(struct carrier *carrier, uint64_t read)
{
    ck_assert_ptr_eq(carrier, &peer);
    n_restarted++;
    read_before = read;
}

static const struct carrier_class CLASS = {.restarted = on_restarted};

/* As the keeper does: descriptors of its own, in the place of the former ones. */
static void hold(void)
{
    int fds[ENDPOINT_HELD_FDS];

    for (size_t i = 0; i < n_held; i++)
        close(held[i]);
    n_held = endpoint_held_fds(&endpoint, fds);
    for (size_t i = 0; i < n_held; i++)
        held[i] = fake_peer_copy_fd(fds[i]);
}

static void new_loop(bool force_eventfd)
{
    const struct loop_options options = {.force_eventfd = force_eventfd};
    const char *reason;

    ck_assert_int_eq(loop_new(&loop, &options, &reason), 0);
}

static void setup(enum wake_backend backend)
{
    const struct endpoint_options options = {.ring_size = RING_SIZE, .inline_max = 512};
    struct endpoint_fds fds;

    new_loop(backend == WAKE_EVENTFD);
    ck_assert_int_eq(endpoint_init(&endpoint, loop, &options, &HANDLER, &fds), 0);
    struct channel_fds theirs = fake_peer_copy_fds(&fds.channel);
    ck_assert_int_eq(carrier_open(&peer, &CLASS, &theirs, fake_peer_copy_fd(fds.control)), 0);
    n_held = 0;
    hold();
    endpoint_forget_fds(&endpoint, &fds);
    ck_assert_int_eq(endpoint_open(&endpoint), 0);
}

static void teardown(void)
{
    endpoint_deinit(&endpoint);
    carrier_deinit(&peer);
    for (size_t i = 0; i < n_held; i++)
        close(held[i]);
    loop_free(loop);
}

static struct work_queue *announcements;

static int adopt(void)
{
    struct endpoint_adoption adoption = {.announcements = announcements};
    int fds[ENDPOINT_HELD_FDS], r;

    for (size_t i = 0; i < n_held; i++)
        fds[i] = fake_peer_copy_fd(held[i]);
    ck_assert_int_eq(endpoint_fds_from_held(&adoption.fds, fds, n_held), 0);
    r = endpoint_adopt(&endpoint, loop, &adoption, &HANDLER);
    for (size_t i = 0; r < 0 && i < n_held; i++)
        ck_assert_int_eq(close(fds[i]), 0); /* still ours */
    return r;
}

/* The supervisor is gone, with all that it had not published. */
static void crash(void)
{
    const bool force_eventfd = endpoint.channel.backend == WAKE_EVENTFD;

    /* endpoint_deinit() would shut it down for all who hold it. */
    endpoint.control = close_fd(endpoint.control);
    endpoint_deinit(&endpoint);
    loop_free(loop);
    new_loop(force_eventfd);
}

static void hand_over(void)
{
    hold();
    endpoint_hand_over(&endpoint);
    ck_assert_int_eq(endpoint_open(&endpoint), 0);
}

static void restart(void)
{
    crash();
    ck_assert_int_eq(adopt(), 0);
    hand_over();
}

static void turns(unsigned n)
{
    fake_peer_turns(loop, n);
}

static void await_records(unsigned n)
{
    while (n_records < n)
        turns(1);
}

static void give(uint64_t value)
{
    void *body;

    ck_assert_int_eq(endpoint_reserve(&endpoint, sizeof(value), &body), 0);
    memcpy(body, &value, sizeof(value));
    endpoint_commit(&endpoint, KIND, sizeof(value));
}

static void give_now(uint64_t value)
{
    give(value);
    turns(2);
}

static void expect(uint64_t value)
{
    struct ring_record record;
    uint64_t found;

    ck_assert_int_eq(carrier_next(&peer, &record), 0);
    memcpy(&found, record.body, sizeof(found));
    ck_assert_uint_eq(found, value);
    channel_release(&peer.channel);
}

static void expect_nothing(void)
{
    struct ring_record record;

    ck_assert_int_eq(carrier_next(&peer, &record), RING_E_EMPTY);
}

static void peer_send(uint64_t value)
{
    uint32_t room = sizeof(value);
    void *body;

    ck_assert_int_eq(carrier_begin(&peer, 0, NULL, &room, &body), 0);
    memcpy(body, &value, sizeof(value));
    ck_assert_int_eq(carrier_commit(&peer, KIND, sizeof(value)), 0);
    carrier_flush(&peer);
}

TEST(both_sides_go_on_where_they_were)
{
    give_now(1);
    expect(1);
    peer_send(10);
    await_records(1);
    restart();
    give_now(2);
    expect(2);
    peer_send(11);
    await_records(2);
    ck_assert_uint_eq(last_value, 11);
    ck_assert_uint_eq(n_restarted, 1);
    ck_assert_uint_eq(n_broken, 0);
}

static bool peer_is_rung(uint32_t before)
{
    return atomic_load(&peer.channel.their_words->bell) != before;
}

TEST(the_wake_up_of_a_peer_waits_in_its_queue_and_a_record_comes_sooner)
{
    struct work_queue queue;

    crash();
    work_queue_init(&queue, loop);
    work_queue_hold(&queue, true);
    announcements = &queue;
    ck_assert_int_eq(adopt(), 0);
    announcements = NULL;
    uint32_t bell = atomic_load(&peer.channel.their_words->bell);
    hand_over();
    turns(2);
    ck_assert(!peer_is_rung(bell));
    give_now(2);
    expect(2);
    work_queue_hold(&queue, false);
    turns(2);
    ck_assert(peer_is_rung(bell));
    task_cancel(&endpoint.announcement);
    endpoint.announcement.queue = NULL;
    work_queue_deinit(&queue);
}

TEST(only_jobs_in_hand_reach_the_next_supervisor)
{
    struct memory_header *header = endpoint.channel.mine.header;
    const uint64_t hands = 1 | UINT64_C(1) << (MEMORY_JOBS_MAX - 1);

    header->jobs[0].cursor = 1;
    header->jobs[1].cursor = 2;
    header->jobs[MEMORY_JOBS_MAX - 1].kept[MEMORY_JOB_KEPT - 1] = 3;
    atomic_store(&header->hands, hands);
    restart();
    header = endpoint.channel.mine.header;
    ck_assert_uint_eq(atomic_load(&header->hands), hands);
    ck_assert_uint_eq(header->jobs[0].cursor, 1);
    ck_assert_uint_eq(header->jobs[1].cursor, 0);
    ck_assert_uint_eq(header->jobs[MEMORY_JOBS_MAX - 1].kept[MEMORY_JOB_KEPT - 1], 3);
}

TEST(what_was_published_before_the_crash_arrives_once_and_in_order)
{
    give_now(1);
    give_now(2);
    peer_send(10);
    restart();
    give_now(3);
    expect(1);
    restart();
    give_now(4);
    expect(2);
    expect(3);
    expect(4);
    expect_nothing();
    await_records(1);
    ck_assert_uint_eq(last_value, 10);
}

TEST(what_was_not_published_is_lost)
{
    give_now(1);
    give(2);
    restart();
    give_now(3);
    expect(1);
    expect(3);
    expect_nothing();
}

TEST(the_next_supervisor_knows_what_the_peer_consumes_of_its_predecessors_records)
{
    give_now(1);
    expect(1);
    give_now(2);
    restart();
    ck_assert_uint_eq(n_consumed, 0);
    (void)endpoint_advance(&endpoint);
    ck_assert_uint_eq(n_consumed, 1);
    expect(2);
    (void)endpoint_advance(&endpoint);
    ck_assert_uint_eq(n_consumed, 2);
}

TEST(a_ring_that_was_full_goes_on_and_wraps)
{
    uint64_t given = 0, expected = 0;

    for (unsigned round = 0; round < 5; round++) {
        void *body;

        while (endpoint_reserve(&endpoint, sizeof(given), &body) == 0)
            give(++given);
        turns(2);
        restart();
        while (expected < given)
            expect(++expected);
        expect_nothing();
    }
    ck_assert_uint_gt(given, 4 * RING_SIZE / 16);
}

static void *wait_for_record(void *result)
{
    int *r = result;

    *r = channel_wait(&peer.channel, USEC_INFINITY);
    return NULL;
}

TEST(a_sleeping_peer_wakes_for_the_next_inbox_and_sleeps_again)
{
    pthread_t thread;
    int r = 1;

    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_record, &r), 0);
    while (atomic_load(&peer.channel.words->sleeping) == MEMORY_AWAKE)
        (void)sched_yield();
    restart();
    turns(2);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(r, 0);
    expect_nothing();
    ck_assert_uint_eq(n_restarted, 1);
    /* The kernel may carry out the last wake-up only now: a wait may end without a reason. */
    for (unsigned n = 0; (r = channel_wait(&peer.channel, 0)) == 0 && n < 10; n++)
        ;
    ck_assert_int_eq(r, -ETIMEDOUT);
    give_now(1);
    ck_assert_int_eq(channel_wait(&peer.channel, USEC_INFINITY), 0);
    expect(1);
}

TEST(flags_and_controls_reach_a_peer_that_has_not_taken_the_next_inbox)
{
    restart();
    endpoint_mark(&endpoint, 77);
    endpoint_set_control(&endpoint, MEMORY_CONTROL_PAUSE);
    ck_assert_uint_eq(peer.channel.their_words->mark, 77);
    ck_assert_uint_eq(peer.channel.their_words->control, MEMORY_CONTROL_PAUSE);
    ck_assert_uint_eq(n_restarted, 0);
}

TEST(the_peer_learns_which_of_its_requests_the_former_supervisor_had_read)
{
    peer_send(1);
    await_records(1);
    uint64_t before = peer.position;
    crash();
    peer_send(2);
    ck_assert_int_eq(adopt(), 0);
    hand_over();
    peer_send(3);
    expect_nothing();
    ck_assert_uint_eq(read_before, before);
    await_records(3);
    ck_assert_uint_eq(last_value, 3);
}

/* Sends the descriptor of a blob of three bytes. */
static void send_blob(int socket, uint64_t serial)
{
    int fd;

    ck_assert_int_eq(payload_blob_copy("abc", 3, &fd), 0);
    ck_assert_int_eq(payload_send_fd(socket, fd, serial), 0);
    close(fd);
}

static void expect_blob(uint64_t serial)
{
    int fd;

    ck_assert_int_eq(payload_receive_fd(peer.control, serial, payload_drop_fd, &fd), 0);
    close(fd);
}

TEST(a_descriptor_whose_record_was_never_published_is_dropped)
{
    send_blob(endpoint.control, 1);
    give_now(1);
    send_blob(endpoint.control, 2); /* the crash comes before its record */
    restart();
    send_blob(endpoint.control, 1);
    give_now(2);
    restart();
    send_blob(endpoint.control, 1);
    give_now(3);
    expect(1);
    expect_blob(1);
    expect(2);
    expect_blob(1);
    expect(3);
    expect_blob(1);
}

TEST(a_blob_that_the_former_supervisor_had_received_is_lost_and_the_next_one_comes)
{
    int fd;

    takes = true;
    send_blob(peer.control, 1);
    peer_send(1);
    send_blob(peer.control, 2);
    peer_send(2);
    /* It has received the first one, and dies with the record in hand. */
    ck_assert_int_eq(payload_receive_fd(endpoint.control, 1, payload_drop_fd, &fd), 0);
    close(fd);
    crash();
    ck_assert_int_eq(adopt(), 0);
    hand_over();
    await_records(2);
    ck_assert_int_eq(take_result, 0);
    ck_assert_uint_eq(endpoint.blobs_received, 2);
    crash();
    send_blob(peer.control, 3);
    peer_send(3);
    ck_assert_int_eq(payload_receive_fd(held[2], 3, payload_drop_fd, &fd), 0);
    close(fd);
    ck_assert_int_eq(adopt(), 0);
    hand_over();
    await_records(3);
    ck_assert_int_eq(take_result, -ECONNRESET);
    send_blob(peer.control, 4);
    peer_send(4);
    await_records(4);
    ck_assert_int_eq(take_result, 0);
    ck_assert_uint_eq(n_broken, 0);
}

TEST(an_inbox_waits_until_the_control_socket_has_room)
{
    uint64_t n = 0, serial;
    int fd;

    for (;;) {
        int r, blob;

        ck_assert_int_eq(payload_blob_copy("abc", 3, &blob), 0);
        r = payload_send_fd(endpoint.control, blob, ++n);
        close(blob);
        if (r == -EAGAIN)
            break;
        ck_assert_int_eq(r, 0);
    }
    restart();
    give_now(1000);
    ck_assert(endpoint.hand_over_watch.id != 0);
    expect_nothing();
    for (uint64_t i = 1; i < n; i++) {
        ck_assert_int_eq(payload_receive_any(peer.control, &serial, payload_drop_fd, &fd), 0);
        ck_assert_uint_eq(serial, i);
        close(fd);
    }
    while (endpoint.hand_over_watch.id != 0)
        turns(1);
    expect(1000);
}

TEST(a_peer_with_another_back_end_is_not_adopted)
{
    const bool eventfd = endpoint.channel.backend == WAKE_EVENTFD;

    crash();
    loop_free(loop);
    new_loop(!eventfd);
    if ((loop_wake_backend(loop) == WAKE_EVENTFD) != eventfd) /* else the kernel has one only */
        ck_assert_int_eq(adopt(), -EPROTO);
    loop_free(loop);
    new_loop(eventfd);
    ck_assert_int_eq(adopt(), 0);
}

TEST(a_peer_that_has_spoilt_its_cursors_is_not_adopted)
{
    give_now(1);
    crash();
    atomic_store(&peer.channel.words->head, 12345);
    ck_assert_int_eq(adopt(), -EPROTO);
    atomic_store(&peer.channel.words->head, 0);
    atomic_store(&peer.channel.their_words->head, 8 * RING_SIZE);
    ck_assert_int_eq(adopt(), -EPROTO);
    atomic_store(&peer.channel.their_words->head, 0);
    peer.channel.mine.header->magic ^= 1;
    ck_assert_int_eq(adopt(), -EPROTO);
    peer.channel.mine.header->magic ^= 1;
    ck_assert_int_eq(adopt(), 0);
}

const struct suite suite = {.setup_with = setup, .teardown = teardown};

/* SPDX-License-Identifier: MIT */
#include "shared/protocol/protocol-actors.h"
#include "tests/unit/fake-peer.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* The peer lives in this process, on descriptors of its own. Every test runs with both back ends.
 */

#define RING_SIZE UINT32_C(4096)

static struct loop *loop;
static struct endpoint endpoint;
static struct channel peer;
static int peer_control;
static unsigned n_records, n_broken, n_space;
static uint32_t last_value;
static int record_answer;
static const struct payload *given_on_space; /* what the handler tries to give when there is room */
static int given_answer;

static bool ends_batch;

static int on_record(struct endpoint *self, const struct ring_record *record)
{
    ck_assert_ptr_eq(self, &endpoint);
    if (record_answer != 0) {
        loop_stop(loop);
        return record_answer;
    }
    n_records++;
    if (ends_batch)
        endpoint_end_batch(self);
    memcpy(&last_value, record->body, sizeof(last_value));
    loop_stop(loop);
    return 0;
}

static void on_space(struct endpoint *self)
{
    struct payload_wire wire;

    n_space++;
    if (given_on_space)
        given_answer = endpoint_give(self, given_on_space, &wire);
    loop_stop(loop);
}

static void on_broken(struct endpoint *self, const char *what)
{
    ck_assert_ptr_nonnull(what);
    n_broken++;
    loop_stop(loop);
}

static const struct endpoint_handler HANDLER = {
    .record = on_record,
    .space = on_space,
    .broken = on_broken,
};

static void setup(enum wake_backend backend)
{
    const struct loop_options loop_options = {.force_eventfd = backend == WAKE_EVENTFD};
    const struct endpoint_options options = {.ring_size = RING_SIZE, .inline_max = 1024};
    struct endpoint_fds fds;
    const char *reason;

    ck_assert_int_eq(loop_new(&loop, &loop_options, &reason), 0);
    ck_assert_int_eq(endpoint_init(&endpoint, loop, &options, &HANDLER, &fds), 0);
    struct channel_fds theirs = fake_peer_copy_fds(&fds.channel);
    peer_control = fake_peer_copy_fd(fds.control);
    endpoint_forget_fds(&endpoint, &fds);
    ck_assert_int_eq(channel_open(&peer, &theirs), 0);
    ck_assert_int_eq(endpoint_open(&endpoint), 0);
    give_up_after(loop, 10 * USEC_PER_SEC);
}

static void teardown(void)
{
    endpoint_deinit(&endpoint);
    channel_deinit(&peer);
    close_fd(peer_control);
    give_up_after(loop, USEC_INFINITY);
    loop_free(loop);
}

static void ring_bell(struct channel *channel)
{
    atomic_fetch_add(&channel->words->bell, 1);
    channel->wake(channel, &channel->words->bell);
}

static void peer_send(uint32_t value)
{
    void *body;

    ck_assert_int_eq(ring_reserve(&peer.out, sizeof(value), &body), 0);
    memcpy(body, &value, sizeof(value));
    ring_commit(&peer.out, 77, sizeof(value));
    channel_publish(&peer);
}

static void run(void)
{
    ck_assert_int_eq(loop_run(loop), 0);
}

static int endpoint_send(uint32_t size)
{
    void *body;
    int r = endpoint_reserve(&endpoint, size, &body);

    if (r == 0) {
        memset(body, 'x', size);
        endpoint_commit(&endpoint, 5, size);
    }
    return r;
}

/* Fills the peer's inbox to the brim. Returns how many records it took. */
static unsigned fill(void)
{
    unsigned n = 0;

    while (endpoint_send(1000) == 0)
        n++;
    return n;
}

static void peer_read_all(void)
{
    struct ring_record record;

    while (ring_next(&peer.in, &record) == 0)
        ;
    channel_release(&peer);
}

TEST(records_arrive_one_by_one_however_long_the_peer_was_silent)
{
    for (uint32_t i = 1; i <= 20; i++) {
        peer_send(i);
        run();
        ck_assert_uint_eq(n_records, i);
        ck_assert_uint_eq(last_value, i);
    }
}

TEST(a_record_that_costs_a_whole_turn_is_the_last_of_its_turn)
{
    for (uint32_t i = 1; i <= 20; i++)
        peer_send(i);
    endpoint_catch_up(&endpoint);
    ck_assert_uint_eq(n_records, 20);
    ends_batch = true;
    for (uint32_t i = 1; i <= 20; i++)
        peer_send(i);
    for (uint32_t i = 1; i <= 20; i++) {
        endpoint_catch_up(&endpoint);
        ck_assert_uint_eq(n_records, 20 + i);
        ck_assert_uint_eq(last_value, i);
    }
    ends_batch = false;
}

TEST(what_is_sent_reaches_the_peer_at_the_end_of_the_turn)
{
    struct ring_record record;

    ck_assert_int_eq(endpoint_send(24), 0);
    ck_assert_int_eq(ring_next(&peer.in, &record), RING_E_EMPTY);
    peer_send(1);
    run();
    ck_assert_int_eq(ring_next(&peer.in, &record), 0);
    ck_assert_uint_eq(record.size, 24);
    ck_assert_uint_eq(record.kind, 5);
}

static void send_one_of(unsigned more)
{
    void *body;

    ck_assert_int_eq(endpoint_reserve(&endpoint, 8, &body), 0);
    memset(body, 'x', 8);
    endpoint_commit_of_many(&endpoint, 5, 8, more);
}

static unsigned peer_count(void)
{
    struct ring_record record;
    unsigned n = 0;

    while (ring_next(&peer.in, &record) == 0)
        n++;
    return n;
}

TEST(one_of_many_waits_for_its_like_but_not_beyond_the_end_of_the_work)
{
    send_one_of(10);
    send_one_of(9);
    ck_assert_uint_eq(peer_count(), 0);
    peer_send(1);
    run();
    peer_send(2);
    run(); /* it has slept in between */
    ck_assert_uint_eq(peer_count(), 2);
}

TEST(the_last_of_many_is_shown_in_its_turn_with_those_before_it)
{
    send_one_of(2);
    send_one_of(1);
    peer_send(1);
    run();
    ck_assert_uint_eq(peer_count(), 2);
}

TEST(a_wild_cursor_breaks_the_endpoint_once)
{
    atomic_store(&peer.mine.header->tail, UINT32_C(0x7ffffff8));
    ring_bell(&peer);
    if (peer.wake_fd >= 0)
        wake_eventfd_wake(peer.wake_fd);
    run();
    ck_assert_uint_eq(n_broken, 1);
    ck_assert_uint_eq(n_records, 0);
    ck_assert_int_eq(endpoint_send(8), -EPROTO);
    ck_assert_uint_eq(n_broken, 1);
}

TEST(a_record_that_its_handler_rejects_breaks_the_endpoint)
{
    record_answer = -EBADMSG;
    peer_send(1);
    run();
    ck_assert_uint_eq(n_broken, 1);
}

TEST(a_wild_read_cursor_is_noticed_when_sending)
{
    atomic_store(&peer.words->head, UINT32_C(12345));
    while (n_broken == 0 && endpoint_send(1000) == 0)
        ;
    ck_assert_uint_eq(n_broken, 1);
}

TEST(a_full_ring_says_so_and_tells_once_the_peer_has_read)
{
    struct ring_record record;

    ck_assert_uint_ge(fill(), 3);
    peer_send(1);
    /* Not before the records that caused it are released. */
    ck_assert_int_eq(ring_next(&peer.in, &record), RING_E_EMPTY);
    run(); /* its end shows the peer what was sent */
    ck_assert_int_eq(endpoint_send(1000), ENDPOINT_E_FULL);
    ck_assert_int_eq(ring_next(&peer.in, &record), 0);
    peer_read_all();
    n_space = 0;
    run();
    ck_assert_uint_eq(n_space, 1);
    ck_assert_int_eq(endpoint_send(1000), 0);
}

TEST(a_record_whose_answer_has_no_room_is_presented_again)
{
    record_answer = ENDPOINT_E_FULL;
    peer_send(41);
    peer_send(42);
    run();
    ck_assert_uint_eq(n_records, 0);
    record_answer = 0;
    endpoint_resume(&endpoint);
    run();
    ck_assert_uint_ge(n_records, 1);
    while (n_records < 2)
        run();
    ck_assert_uint_eq(last_value, 42);
}

TEST(what_a_dead_peer_has_published_is_still_read)
{
    for (uint32_t i = 1; i <= 5; i++)
        peer_send(i);
    endpoint_drain(&endpoint);
    ck_assert_uint_eq(n_records, 5);
    ck_assert_uint_eq(last_value, 5);
}

TEST(what_a_peer_published_before_it_ended_is_read_although_its_socket_was_found_closed)
{
    struct payload out = PAYLOAD_NULL;
    struct payload_wire wire;
    char text[2000] = {0};

    ck_assert_int_eq(payload_set(&out, text, sizeof(text)), 0); /* above InlineMax= */
    peer_send(1);
    peer_control = close_fd(peer_control);
    ck_assert_int_eq(endpoint_give(&endpoint, &out, &wire), -EPROTO);
    ck_assert_uint_eq(n_broken, 1);
    ck_assert_uint_eq(n_records, 0);
    endpoint_drain(&endpoint);
    ck_assert_uint_eq(last_value, 1);
    payload_deinit(&out);
}

TEST(what_is_published_after_the_end_of_a_peer_is_not_read)
{
    for (uint32_t i = 1; i <= 5; i++)
        peer_send(i);
    endpoint_begin_drain(&endpoint);
    peer_send(6);
    while (endpoint_catch_up(&endpoint))
        peer_send(7);
    ck_assert_uint_eq(n_records, 5);
    ck_assert_uint_eq(last_value, 5);
}

TEST(a_wild_cursor_at_the_end_of_a_peer_is_no_leave_to_go_on_without_end)
{
    peer_send(1);
    atomic_store(&peer.mine.header->tail, UINT32_C(0x7ffffff8));
    endpoint_begin_drain(&endpoint);
    for (uint32_t i = 2; i < 100; i++) {
        peer_send(i); /* the cursor is right again */
        (void)endpoint_catch_up(&endpoint);
    }
    ck_assert_uint_eq(n_records, 0);
}

TEST(a_blob_goes_through_by_descriptor_and_back)
{
    struct payload out = PAYLOAD_NULL, in = PAYLOAD_NULL;
    struct payload_wire wire;
    char text[2000];
    const void *mapped;
    int fd;

    memset(text, 'b', sizeof(text));
    ck_assert_int_eq(payload_set(&out, text, sizeof(text)), 0); /* above InlineMax */
    ck_assert_int_eq(endpoint_give(&endpoint, &out, &wire), 0);
    ck_assert_int_eq(wire.form, PAYLOAD_BLOB);
    ck_assert_int_eq(payload_receive_fd(peer_control, wire.serial, payload_drop_fd, &fd), 0);
    ck_assert_int_eq(payload_blob_check(fd, sizeof(text)), 0);
    ck_assert_int_eq(payload_send_fd(peer_control, fd, 1), 0);
    wire = (struct payload_wire){.form = PAYLOAD_BLOB, .size = sizeof(text), .serial = 1};
    ck_assert_int_eq(endpoint_take(&endpoint, &wire, &in), 0);
    ck_assert_int_eq(payload_blob_map(in.fd, sizeof(text), &mapped), 0);
    ck_assert_int_eq(memcmp(mapped, text, sizeof(text)), 0);
    munmap((void *)(uintptr_t)mapped, sizeof(text));
    close_fd(fd);
    payload_deinit(&in);
    payload_deinit(&out);
}

TEST(a_blob_that_is_not_sealed_is_refused)
{
    struct payload_wire wire = {.form = PAYLOAD_BLOB, .size = 100, .serial = 1};
    struct payload in = PAYLOAD_NULL;
    _cleanup_close_ int fd = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    ck_assert_int_eq(ftruncate(fd, 100), 0);
    ck_assert_int_eq(payload_send_fd(peer_control, fd, 1), 0);
    ck_assert_int_eq(endpoint_take(&endpoint, &wire, &in), -EPROTO);
}

TEST(a_blob_that_never_came_is_a_violation)
{
    struct payload_wire wire = {.form = PAYLOAD_BLOB, .size = 100, .serial = 1};
    struct payload in = PAYLOAD_NULL;

    ck_assert_int_eq(endpoint_take(&endpoint, &wire, &in), -EPROTO);
}

/* Until the control socket takes no more. Returns what refused the last one. */
static int give_until_refused(const struct payload *payload)
{
    struct payload_wire wire;
    int r;

    do
        r = endpoint_give(&endpoint, payload, &wire);
    while (r == 0);
    return r;
}

static void set_blob(struct payload *payload)
{
    void *data;
    int fd;

    ck_assert_int_eq(payload_blob_new(100, &fd, &data), 0);
    ck_assert_int_eq(payload_blob_seal(fd, data, 100), 0);
    payload_set_blob(payload, fd, 100);
}

static unsigned turns_left;

static void on_turn(void *userdata, uint32_t events)
{
    if (--turns_left == 0)
        loop_stop(loop);
}

/* As many turns as it takes for anything that is ready to come. */
static void run_turns(unsigned n)
{
    struct loop_watch watch = LOOP_WATCH_NULL;
    int fd = eventfd(1, EFD_CLOEXEC);

    turns_left = n;
    ck_assert_int_eq(loop_watch_fd(loop, &watch, fd, POLLIN, on_turn, NULL), 0);
    run();
    loop_unwatch(loop, &watch);
    close_fd(fd);
}

/* One eventfd tells of data and of room alike: it ends a wait that something else was armed for. */
TEST(a_peer_that_rings_without_fetching_its_blobs_leaves_no_watch_behind, .only = WAKE_EVENTFD)
{
    struct payload blob = PAYLOAD_NULL;

    set_blob(&blob);
    ck_assert_int_eq(give_until_refused(&blob), ENDPOINT_E_FULL);
    given_on_space = &blob;
    for (unsigned i = 1; i <= 2; i++) {
        wake_eventfd_wake(peer.wake_fd);
        run();
        ck_assert_uint_eq(n_space, i);
        ck_assert_int_eq(given_answer, ENDPOINT_E_FULL);
    }
    endpoint_deinit(&endpoint);
    peer_control = close_fd(peer_control);
    run_turns(5);
    ck_assert_uint_eq(n_space, 2);
    payload_deinit(&blob);
}

TEST(a_peer_that_fetches_its_blobs_is_told_to_have_room_again)
{
    struct payload blob = PAYLOAD_NULL;
    uint64_t serial = 0;
    int fd;

    set_blob(&blob);
    ck_assert_int_eq(give_until_refused(&blob), ENDPOINT_E_FULL);
    while (payload_receive_fd(peer_control, serial + 1, payload_drop_fd, &fd) == 0) {
        close_fd(fd);
        serial++;
    }
    given_on_space = &blob;
    run();
    ck_assert_uint_eq(n_space, 1);
    ck_assert_int_eq(given_answer, 0);
    ck_assert_int_eq(payload_receive_fd(peer_control, serial + 1, payload_drop_fd, &fd), 0);
    close_fd(fd);
    payload_deinit(&blob);
}

TEST(a_blob_for_which_there_is_no_descriptor_is_lost_and_the_next_one_comes)
{
    struct payload_wire wire = {.form = PAYLOAD_BLOB, .size = 100, .serial = 1};
    struct payload blob = PAYLOAD_NULL, in = PAYLOAD_NULL;
    struct rlimit limit, none;

    set_blob(&blob);
    ck_assert_int_eq(payload_send_fd(peer_control, blob.fd, 1), 0);
    ck_assert_int_eq(payload_send_fd(peer_control, blob.fd, 2), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq(endpoint_take(&endpoint, &wire, &in), -EMFILE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    wire.serial = 2;
    ck_assert_int_eq(endpoint_take(&endpoint, &wire, &in), 0);
    ck_assert_uint_eq(in.size, 100);
    payload_deinit(&in);
    payload_deinit(&blob);
}

/* ---- a peer that published and did not wake ---- */

static void peer_send_kind(uint16_t kind, uint32_t value)
{
    void *body;

    ck_assert_int_eq(ring_reserve(&peer.out, sizeof(value), &body), 0);
    memcpy(body, &value, sizeof(value));
    ring_commit(&peer.out, kind, sizeof(value));
    ck_assert(ring_publish(&peer.out));
}

/* More than a quiet source stays hot, beside a descriptor that keeps the loop busy. */
#define UNTIL_COOL 100

static void wake_tail(void)
{
    ring_bell(&peer);
    if (peer.wake_fd >= 0)
        wake_eventfd_wake(peer.wake_fd);
}

/* Outside of a turn, so that what the handler stopped has to be begun again. */
static void catch_up(void)
{
    ck_assert(!endpoint_catch_up(&endpoint));
    run();
}

TEST(one_that_caught_up_while_it_slept_sleeps_again_on_one_watch)
{
    for (uint32_t i = 1; i <= 3; i++) {
        peer_send_kind(77, i);
        catch_up();
        ck_assert_uint_eq(n_records, i);
        run_turns(UNTIL_COOL);
    }
    endpoint_deinit(&endpoint);
    wake_tail();
    run_turns(5);
}

TEST(one_that_was_held_up_while_it_caught_up_sleeps_again_on_one_watch)
{
    record_answer = ENDPOINT_E_FULL;
    run_turns(UNTIL_COOL);
    peer_send_kind(77, 1);
    catch_up();
    run_turns(UNTIL_COOL);
    record_answer = 0;
    endpoint_resume(&endpoint);
    run();
    run_turns(UNTIL_COOL);
    ck_assert_uint_eq(n_records, 1);
    peer_send(2);
    run();
    ck_assert_uint_eq(n_records, 2);
}

/* ---- before their turn ---- */

static unsigned n_envelopes, n_looked, n_urgent;
static uint32_t envelopes[8];

/* As FORWARD to oneself: it leads back to the very inbox that is full. */
static int on_report(struct endpoint *self, const struct ring_record *record)
{
    int r = endpoint_send(1000);

    ck_assert_ptr_eq(self, &endpoint);
    ck_assert(r == 0 || r == ENDPOINT_E_FULL);
    ck_assert_uint_lt(n_envelopes, 8);
    memcpy(&envelopes[n_envelopes++], record->body, sizeof(uint32_t));
    return 0;
}

#define URGENT 99

static bool is_urgent(uint16_t kind)
{
    return kind == URGENT;
}

static int on_look(struct endpoint *self, const struct ring_record *record, bool first)
{
    ck_assert(first == (n_looked == 0));
    n_looked++;
    n_urgent += record->kind == URGENT;
    return 0;
}

static const struct endpoint_handler AHEAD = {
    .record = on_record,
    .report = on_report,
    .look = on_look,
    .is_urgent = is_urgent,
    .space = on_space,
    .broken = on_broken,
};

TEST(what_it_reads_ahead_may_lead_back_to_itself)
{
    endpoint.handler = &AHEAD;
    ck_assert_uint_ge(fill(), 3);
    record_answer = ENDPOINT_E_FULL;
    peer_send(1); /* suspends */
    run();
    for (uint32_t i = 1; i <= 4; i++)
        peer_send_kind(PROTOCOL_FORWARD, i);
    peer_read_all();
    n_space = 0;
    ck_assert_int_eq(endpoint_send(1000), ENDPOINT_E_FULL);
    run();
    ck_assert_uint_eq(n_envelopes, 4);
    for (uint32_t i = 1; i <= 4; i++)
        ck_assert_uint_eq(envelopes[i - 1], i);
    ck_assert_uint_eq(n_space, 1);
    ck_assert_uint_eq(n_broken, 0);
    /* And not once more when their turn comes. */
    record_answer = 0;
    endpoint_resume(&endpoint);
    run_turns(5);
    ck_assert_uint_eq(n_records, 1);
    ck_assert_uint_eq(n_envelopes, 4);
}

TEST(a_tail_that_goes_back_while_it_reads_ahead_breaks_the_endpoint)
{
    endpoint.handler = &AHEAD;
    ck_assert_uint_ge(fill(), 3);
    record_answer = ENDPOINT_E_FULL;
    peer_send(1);
    run();
    peer_send_kind(PROTOCOL_FORWARD, 1);
    peer_read_all();
    ck_assert_int_eq(endpoint_send(1000), ENDPOINT_E_FULL);
    atomic_store(&peer.mine.header->tail, peer.out.tail - 16);
    while (n_broken == 0)
        run();
    ck_assert_uint_eq(n_envelopes, 0);
}

TEST(what_is_urgent_passes_a_record_that_waits_whenever_it_comes)
{
    endpoint.handler = &AHEAD;
    record_answer = ENDPOINT_E_FULL;
    peer_send(1);
    peer_send_kind(URGENT, 2);
    run();
    while (n_urgent < 1)
        run_turns(1);
    run_turns(UNTIL_COOL);
    for (uint32_t i = 2; i <= 4; i++) {
        peer_send(i);
        peer_send_kind(URGENT, i);
        wake_tail();
        while (n_urgent < i)
            run_turns(1);
    }
    record_answer = 0;
    endpoint_resume(&endpoint);
    while (n_records < 4)
        run_turns(1);
    ck_assert_uint_eq(n_urgent, 4);
    ck_assert_uint_eq(n_looked, 8);
    ck_assert_uint_eq(last_value, 4);
    peer_send_kind(URGENT, 5);
    wake_tail();
    run();
    ck_assert_uint_eq(last_value, 5);
}

/* Returns the descriptor of the inbox of an endpoint that is made, and gone again. */
static int made_with(const struct endpoint_options *options)
{
    struct endpoint other;
    struct endpoint_fds fds;
    int inbox;

    ck_assert_int_eq(endpoint_init(&other, loop, options, &HANDLER, &fds), 0);
    inbox = fds.channel.inbox;
    ck_assert_uint_eq(other.channel.mine.ring_size, options->ring_size);
    endpoint_forget_fds(&other, &fds);
    endpoint_deinit(&other);
    return inbox;
}

TEST(a_stock_is_for_the_next_endpoint_with_the_same_options)
{
    struct endpoint_stock stock = {.full = false};
    const struct endpoint_options options = {
        .ring_size = RING_SIZE, .inline_max = 1024, .stock = &stock};
    const struct endpoint_options larger = {
        .ring_size = 2 * RING_SIZE, .inline_max = 1024, .stock = &stock};

    endpoint_stock_fill(&stock, loop, &options);
    ck_assert_int_ne(made_with(&larger), stock.fds.channel.inbox);
    ck_assert(stock.full);
    ck_assert_int_eq(made_with(&options), stock.fds.channel.inbox);
    ck_assert(!stock.full);
    (void)made_with(&options);
    endpoint_stock_fill(&stock, loop, &options);
    endpoint_stock_deinit(&stock);
    ck_assert(!stock.full);
}

const struct suite suite = {.setup_with = setup, .teardown = teardown};

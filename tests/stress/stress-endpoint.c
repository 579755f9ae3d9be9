/* SPDX-License-Identifier: MIT */

/*
 * Tests that an endpoint that lacks the memory to wait for its peer reports itself broken instead
 * of waiting for ever, and that one that lacks the memory to receive a blob goes on with the next.
 * Needs a build with -DTROUPE_FAULTS.
 */

#ifndef TROUPE_FAULTS
#error "to be built with -DTROUPE_FAULTS"
#endif

#include "shared/base/fault.h"
#include "supervisor/channel/endpoint.h"
#include "tests/unit/suite.h"
#include <sys/eventfd.h>

#define WATCHES_MAX 1024

static struct loop *loop;
static struct endpoint endpoint;
static int peer_control, dummy;
static struct loop_watch watches[WATCHES_MAX];
static size_t n_watches;
static unsigned n_broken;

static int on_record(struct endpoint *self, const struct ring_record *record)
{
    return 0;
}

static void on_space(struct endpoint *self)
{
    ck_abort_msg("there is no room");
}

static void on_broken(struct endpoint *self, const char *what)
{
    ck_assert_ptr_eq(self, &endpoint);
    ck_assert_ptr_nonnull(strstr(what, "memory"));
    n_broken++;
}

static const struct endpoint_handler HANDLER = {
    .record = on_record,
    .space = on_space,
    .broken = on_broken,
};

static void on_dummy(void *userdata, uint32_t events)
{
}

/* Leaves the next watch without memory. */
static void use_up_watches(void)
{
    fault_arm("alloc:1+");
    while (loop_watch_fd(loop, &watches[n_watches], dummy, 0, on_dummy, NULL) == 0)
        ck_assert_uint_lt(++n_watches, WATCHES_MAX);
}

static void setup(enum wake_backend backend)
{
    const struct loop_options loop_options = {.force_eventfd = backend == WAKE_EVENTFD};
    const struct endpoint_options options = {.ring_size = 4096, .inline_max = 1024};
    struct endpoint_fds fds;
    const char *reason;

    ck_assert_int_eq(loop_new(&loop, &loop_options, &reason), 0);
    ck_assert_int_eq(endpoint_init(&endpoint, loop, &options, &HANDLER, &fds), 0);
    peer_control = fcntl(fds.control, F_DUPFD_CLOEXEC, 0);
    endpoint_forget_fds(&endpoint, &fds);
    ck_assert_int_eq(endpoint_open(&endpoint), 0);
    dummy = eventfd(0, EFD_CLOEXEC);
    use_up_watches();
}

static void teardown(void)
{
    fault_arm(NULL);
    for (size_t i = 0; i < n_watches; i++)
        loop_unwatch(loop, &watches[i]);
    endpoint_deinit(&endpoint);
    close_fd(peer_control);
    close_fd(dummy);
    loop_free(loop);
}

static int send_record(void)
{
    void *body;
    int r = endpoint_reserve(&endpoint, 500, &body);

    if (r == 0) {
        memset(body, 'x', 500);
        endpoint_commit(&endpoint, 5, 500);
    }
    return r;
}

TEST(a_full_ring_that_cannot_be_waited_for_breaks_the_endpoint, .only = WAKE_FUTEX)
{
    unsigned n = 0;
    int r;

    while ((r = send_record()) == 0)
        n++;
    ck_assert_uint_ge(n, 3);
    ck_assert_int_eq(r, -EPROTO);
    ck_assert_uint_eq(n_broken, 1);
    fault_arm(NULL);
    ck_assert_int_eq(send_record(), -EPROTO);
    ck_assert_uint_eq(n_broken, 1);
}

TEST(a_full_control_socket_that_cannot_be_waited_for_breaks_the_endpoint)
{
    struct payload blob = PAYLOAD_NULL;
    struct payload_wire wire;
    unsigned n = 0;
    void *data;
    int fd, r;

    ck_assert_int_eq(payload_blob_new(100, &fd, &data), 0);
    ck_assert_int_eq(payload_blob_seal(fd, data, 100), 0);
    payload_set_blob(&blob, fd, 100);
    while ((r = endpoint_give(&endpoint, &blob, &wire)) == 0)
        n++;
    ck_assert_uint_ge(n, 1);
    ck_assert_int_eq(r, -EPROTO);
    ck_assert_uint_eq(n_broken, 1);
    ck_assert_int_eq(send_record(), -EPROTO);
    ck_assert_uint_eq(n_broken, 1);
    payload_deinit(&blob);
}

static void peer_send_blob(uint64_t serial)
{
    void *data;
    int fd;

    ck_assert_int_eq(payload_blob_new(100 + serial, &fd, &data), 0);
    ck_assert_int_eq(payload_blob_seal(fd, data, 100 + serial), 0);
    ck_assert_int_eq(payload_send_fd(peer_control, fd, serial), 0);
    close_fd(fd);
}

static int take_blob(uint64_t serial)
{
    const struct payload_wire wire = {.form = PAYLOAD_BLOB, .size = 100 + serial, .serial = serial};
    struct payload in = PAYLOAD_NULL;
    int r = endpoint_take(&endpoint, &wire, &in);

    if (r == 0)
        ck_assert_uint_eq(in.size, 100 + serial);
    payload_deinit(&in);
    return r;
}

TEST(a_blob_that_memory_is_too_short_for_is_lost_and_the_next_one_comes, .only = WAKE_FUTEX)
{
    for (uint64_t serial = 1; serial <= 4; serial++)
        peer_send_blob(serial);
    fault_arm("receive:1=12"); /* ENOMEM */
    ck_assert_int_eq(take_blob(1), -ENOMEM);
    ck_assert_int_eq(take_blob(2), 0);
    fault_arm("receive:1=12");
    ck_assert_int_eq(take_blob(3), -ENOMEM);
    ck_assert_int_eq(take_blob(4), 0);
    /* Only as many as were left behind are dropped. */
    peer_send_blob(4);
    peer_send_blob(5);
    ck_assert_int_eq(take_blob(5), -EPROTO);
}

const struct suite suite = {.setup_with = setup, .teardown = teardown};

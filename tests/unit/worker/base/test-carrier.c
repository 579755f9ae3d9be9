/* SPDX-License-Identifier: MIT */
#include "worker/base/carrier.h"

#include "shared/protocol/protocol.h"
#include "tests/unit/suite.h"
#include <sys/resource.h>

#define INLINE_MAX 512u
#define LARGE      4096u

static struct channel peer;
static struct carrier carrier;
static int peer_socket;
static unsigned n_pumped, n_waited;
static char large[LARGE];

static uint64_t received; /* descriptors */

/* Takes a descriptor as the peer, which must carry the next serial. */
static void take_descriptor(void)
{
    int fd;

    ck_assert_int_eq(payload_receive_fd(peer_socket, received + 1, payload_drop_fd, &fd), 0);
    close_fd(fd);
    received++;
}

static int wait_room(struct carrier *self, uint32_t size)
{
    struct ring_record record;

    ck_assert_ptr_eq(self, &carrier);
    n_waited++;
    while (ring_next(&peer.in, &record) == 0)
        ;
    channel_release(&peer);
    return 0;
}

static int pump(struct carrier *self, usec_t timeout)
{
    ck_assert_ptr_eq(self, &carrier);
    ck_assert_uint_eq(timeout, 0);
    if (n_pumped++ == 0)
        take_descriptor();
    return 0;
}

static const struct carrier_class class = {.wait_room = wait_room, .pump = pump};

static void set_up(void)
{
    const struct channel_options options = {
        .ring_size = 4096, .inline_max = INLINE_MAX, .backend = WAKE_EVENTFD};
    struct channel_fds fds, ours;
    int sockets[2];

    ck_assert_int_eq(channel_create(&peer, &options, &fds), 0);
    ours =
        (struct channel_fds){dup(fds.inbox), dup(fds.outbox), dup(fds.wait_fd), dup(fds.wake_fd)};
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
    peer_socket = sockets[0];
    ck_assert_int_eq(carrier_open(&carrier, &class, &ours, sockets[1]), 0);
}

static void tear_down(void)
{
    carrier_deinit(&carrier);
    channel_deinit(&peer);
    close_fd(peer_socket);
}

static int put(const void *data, size_t size, unsigned flags)
{
    struct protocol_result result = {.payload = {.data = data, .size = size}};

    int r = carrier_put(&carrier, PROTOCOL_RESULT, result, &result, &result.payload, flags);
    carrier_flush(&carrier);
    return r;
}

/* Reads the next record as the peer. False: there is none. */
static bool next(struct protocol_result *ret)
{
    struct ring_record record;

    if (ring_next(&peer.in, &record) != 0)
        return false;
    ck_assert_int_eq(record.kind, PROTOCOL_RESULT);
    ck_assert_int_eq(protocol_get_result(record.body, record.size, ret), 0);
    return true;
}

static void expect_inline(const char *text)
{
    struct protocol_result result;

    ck_assert(next(&result));
    ck_assert_int_eq(result.payload.form, PAYLOAD_INLINE);
    ck_assert_uint_eq(result.payload.size, strlen(text));
    ck_assert_mem_eq(result.payload.data, text, strlen(text));
}

static void expect_blob(void)
{
    struct protocol_result result;

    ck_assert(next(&result));
    ck_assert_int_eq(result.payload.form, PAYLOAD_BLOB);
    ck_assert_uint_eq(result.payload.serial, received + 1);
    take_descriptor();
}

static void limit_descriptors(bool none)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = none ? 0 : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(a_blob_that_cannot_be_made_leaves_neither_record_nor_descriptor)
{
    struct protocol_result result;

    limit_descriptors(true);
    ck_assert_int_eq(put(large, LARGE, 0), -EMFILE);
    ck_assert(!next(&result));
    ck_assert_int_eq(put("small", 5, 0), 0);
    limit_descriptors(false);
    ck_assert_int_eq(put(large, LARGE, 0), 0);
    expect_inline("small");
    expect_blob();
}

TEST(a_payload_too_large_for_a_blob_leaves_neither_record_nor_descriptor)
{
    struct protocol_result result;

    ck_assert_int_eq(put(large, SIZE_MAX, 0), -EMSGSIZE);
    ck_assert(!next(&result));
    ck_assert_int_eq(put(large, LARGE, 0), 0);
    expect_blob();
}

TEST(records_are_read_while_the_socket_is_full_of_descriptors)
{
    unsigned n = 0;

    while (n_pumped == 0) {
        ck_assert_int_eq(put(large, LARGE, 0), 0);
        n++;
    }
    ck_assert_uint_gt(n, 1);
    ck_assert_uint_eq(carrier.blobs_sent, n);
}

TEST(whoever_does_not_wait_sends_nothing_when_there_is_no_room)
{
    struct protocol_result result;
    unsigned n = 0;
    int r;

    while ((r = put("x", 1, CARRIER_TRY)) == 0)
        n++;
    ck_assert_int_eq(r, -EAGAIN);
    ck_assert_uint_eq(n_waited, 0);
    for (unsigned i = 0; i < n; i++)
        ck_assert(next(&result));
    ck_assert(!next(&result));
    ck_assert_int_eq(put("y", 1, 0), 0);
    ck_assert_uint_eq(n_waited, 1);
}

TEST(whoever_does_not_wait_sends_no_record_when_the_socket_is_full)
{
    const int size = 1;
    int r;

    /* The smallest buffer that the kernel gives. */
    ck_assert_int_eq(setsockopt(carrier.control, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    do {
        r = put(large, LARGE, CARRIER_TRY);
        if (r == 0) {
            struct protocol_result result;

            ck_assert(next(&result));
            channel_release(&peer);
        }
    } while (r == 0);
    ck_assert_int_eq(r, -EAGAIN);
    ck_assert_uint_eq(n_pumped, 0);
    for (uint64_t n = carrier.blobs_sent; n > 0; n--)
        take_descriptor();
    ck_assert_int_eq(put(large, LARGE, CARRIER_TRY), 0);
    expect_blob();
}

TEST(memory_of_the_program_is_sent_once_and_only_with_its_own_size)
{
    ck_assert_int_eq(blob_new(&carrier.made, 10), 0);
    const char *data = carrier.made.data;
    memcpy(carrier.made.data, "0123456789", 10);
    ck_assert_int_eq(put(data, 9, CARRIER_MADE), -EINVAL);
    ck_assert_int_eq(put(data, 10, 0), 0);
    expect_inline("0123456789");
    ck_assert_int_eq(put(data, 10, CARRIER_MADE), 0);
    expect_blob();
    ck_assert_int_eq(carrier.made.fd, -1);
}

TEST(nothing_is_sent_once_the_connection_is_over)
{
    carrier.over = true;
    ck_assert_int_eq(put("x", 1, 0), -EPIPE);
    ck_assert_int_eq(put(large, LARGE, CARRIER_TRY), -EPIPE);
    ck_assert_uint_eq(carrier.blobs_sent, 0);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};

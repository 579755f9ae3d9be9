/* SPDX-License-Identifier: MIT */
#include "worker/nats/transport.h"

#include "tests/unit/suite.h"
#include <sys/eventfd.h>

/* In the place of libnats: a connection that has bytes to write to one end of a pair of sockets. */
static struct {
    natsEvLoop_Attach attach;
    natsEvLoop_ReadAddRemove read;
    natsEvLoop_WriteAddRemove write;
    void *loop, *userdata;
    int fd, buffered;
} peer;

static struct transport transport;
static int other, wake_fd;

natsStatus natsOptions_SetEventLoop(natsOptions *options, void *loop, natsEvLoop_Attach attach,
                                    natsEvLoop_ReadAddRemove read, natsEvLoop_WriteAddRemove write,
                                    natsEvLoop_Detach detach)
{
    peer.loop = loop;
    peer.attach = attach;
    peer.read = read;
    peer.write = write;
    return NATS_OK;
}

natsStatus natsOptions_SetSendAsap(natsOptions *options, bool asap)
{
    return asap ? NATS_OK : NATS_ERR;
}

int natsConnection_Buffered(natsConnection *connection)
{
    return peer.buffered;
}

void natsConnection_ProcessWriteEvent(natsConnection *connection)
{
    static char data[1 << 16];
    ssize_t n = 1;

    while (peer.buffered > 0 && n > 0) {
        const size_t size =
            (size_t)peer.buffered < sizeof(data) ? (size_t)peer.buffered : sizeof(data);

        n = send(peer.fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            peer.buffered -= (int)n;
    }
    if (peer.buffered == 0)
        peer.write(peer.userdata, false);
}

static void attach(void)
{
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    other = fds[1];
    ck_assert_int_eq(peer.attach(&peer.userdata, peer.loop, NULL, fds[0]), NATS_OK);
    peer.fd = fds[0];
    peer.buffered = 0;
}

static void set_up(void)
{
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    transport_init(&transport, wake_fd);
    ck_assert_int_eq(transport_set(&transport, NULL), NATS_OK);
    attach();
}

static void tear_down(void)
{
    close_fd(wake_fd);
    close_fd(peer.fd);
    close_fd(other);
}

static void publish(int size)
{
    peer.buffered += size;
    peer.write(peer.userdata, true);
}

/* More than the sockets hold. */
static void publish_too_much(void)
{
    publish(64 << 20);
    ck_assert_uint_eq(transport_send(&transport, NULL, 1000), 1000 + 2 * USEC_PER_SEC);
    ck_assert_int_gt(peer.buffered, 0);
}

static size_t take(void)
{
    static char data[1 << 16];
    size_t size = 0;
    ssize_t n;

    while ((n = recv(other, data, sizeof(data), MSG_DONTWAIT)) > 0)
        size += (size_t)n;
    return size;
}

static bool is_shut_down(void)
{
    char byte;

    (void)take();
    return recv(other, &byte, 1, MSG_DONTWAIT) == 0;
}

TEST(all_of_one_turn_leaves_together)
{
    for (int i = 0; i < 100; i++)
        publish(10);
    ck_assert_uint_eq(take(), 0);
    ck_assert_uint_eq(transport_send(&transport, NULL, 1), USEC_INFINITY);
    ck_assert_uint_eq(take(), 1000);
    ck_assert_int_eq(transport_poll(&transport).events, POLLIN);
}

TEST(what_the_socket_does_not_take_waits_for_it)
{
    publish_too_much();
    ck_assert_int_eq(transport_poll(&transport).events, POLLIN | POLLOUT);
    while (peer.buffered > 0) {
        ck_assert_uint_gt(take(), 0);
        (void)transport_send(&transport, NULL, 2000);
    }
    ck_assert_int_eq(transport_poll(&transport).events, POLLIN);
    ck_assert_uint_eq(transport.stalled_at, 0);
}

TEST(a_socket_that_takes_nothing_for_two_seconds_is_given_up)
{
    publish_too_much();
    (void)transport_send(&transport, NULL, 1000 + 2 * USEC_PER_SEC);
    ck_assert(is_shut_down());
}

TEST(a_slow_socket_is_not_given_up)
{
    usec_t now = 1000;

    publish_too_much();
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_gt(take(), 0);
        now += 2 * USEC_PER_SEC;
        ck_assert_uint_eq(transport_send(&transport, NULL, now), now + 2 * USEC_PER_SEC);
    }
    ck_assert(!is_shut_down());
}

static void *publish_one(void *userdata)
{
    publish(1);
    return NULL;
}

TEST(what_another_thread_sends_wakes_the_loop)
{
    eventfd_t n;
    pthread_t thread;

    publish(1);
    ck_assert_int_eq(eventfd_read(wake_fd, &n), -1);
    ck_assert_int_eq(pthread_create(&thread, NULL, publish_one, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_int_eq(eventfd_read(wake_fd, &n), 0);
}

TEST(a_lost_connection_is_neither_waited_for_nor_written)
{
    publish(1);
    peer.read(peer.userdata, false);
    ck_assert_int_eq(transport_poll(&transport).fd, -1);
    ck_assert_uint_eq(transport_send(&transport, NULL, 1), USEC_INFINITY);
    ck_assert_uint_eq(take(), 0);
}

/* The socket takes no more. */
static void fill(void)
{
    static const char data[1 << 12];

    while (send(peer.fd, data, sizeof(data), MSG_DONTWAIT) > 0)
        continue;
}

TEST(a_new_connection_has_time_of_its_own)
{
    publish_too_much();
    peer.read(peer.userdata, false);
    close_fd(peer.fd);
    close_fd(other);
    attach();
    fill();
    publish(1);
    ck_assert_uint_eq(transport_send(&transport, NULL, 1000 + 2 * USEC_PER_SEC),
                      1000 + 4 * USEC_PER_SEC);
    ck_assert(!is_shut_down());
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};

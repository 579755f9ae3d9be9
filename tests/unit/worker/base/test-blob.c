/* SPDX-License-Identifier: MIT */
#include "worker/base/carrier.h"

#include "shared/protocol/payload-wire.h"
#include "tests/unit/suite.h"
#include <sys/resource.h>

#define NOBODY 65534

/* Root may have any number of descriptors in flight. False = this user may, too. */
static bool send_too_many(int socket)
{
    const struct rlimit limit = {.rlim_cur = 16, .rlim_max = 16};
    /* A user of its own: others' descriptors that arrive would count. */
    const uid_t alone = 1000000 + (uid_t)getpid();
    int r;

    ck_assert(geteuid() != 0 || setresuid(alone, alone, alone) == 0 ||
              setresuid(NOBODY, NOBODY, NOBODY) == 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    do
        r = payload_send_fd(socket, STDIN_FILENO, 1);
    while (r == 0);
    return r == -ETOOMANYREFS;
}

TEST(a_sender_does_not_spin_while_too_many_descriptors_of_its_user_are_in_flight)
{
    const usec_t end = usec_add(clock_now(), 100 * USEC_PER_MSEC);
    struct blob blob = BLOB_NULL;
    int sockets[2];
    unsigned n = 0;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
    ck_assert_int_eq(blob_copy(&blob, "x", 1), 0);
    if (send_too_many(sockets[0])) {
        ck_assert(blob_sendable(sockets[0], 0)); /* poll() would return at once */
        for (; clock_now() < end; n++)
            ck_assert_int_eq(blob_send(&blob, sockets[0], 1), -EAGAIN);
        ck_assert_uint_le(n, 20);
    }
    blob_deinit(&blob);
    close_fd(sockets[0]);
    close_fd(sockets[1]);
}

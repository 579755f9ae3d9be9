/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/holdings.h"
#include "tests/unit/suite.h"

static struct holdings holdings;
static struct message message;

static void setup(void)
{
    memset(&holdings, 0, sizeof(holdings));
}

static void teardown(void)
{
}

static int put_for(pid_t pid, uint64_t id, const char *text, size_t size, const int *fds,
                   size_t n_fds)
{
    message_begin(&message, MESSAGE_HOLD, id)->pid = pid;
    ck_assert_int_eq(message_put_held(&message, text, size, fds, n_fds), 0);
    return holdings_put(&holdings, &message);
}

static int put(uint64_t id, const char *text, size_t size, const int *fds, size_t n_fds)
{
    return put_for(0, id, text, size, fds, n_fds);
}

/* The only one. */
static const struct message_record *the_one(void)
{
    static struct message other;
    uint32_t cursor = 0;

    ck_assert(holdings_next(&holdings, &cursor, &message));
    ck_assert(!holdings_next(&holdings, &cursor, &other));
    return &message.record;
}

TEST(bytes_and_descriptors_of_every_size_come_back)
{
    char text[HOLD_BYTES_MAX];
    int fds[HOLD_FDS_MAX];

    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(7 * i);
    for (size_t size = 0; size <= HOLD_BYTES_MAX; size++) {
        const size_t n_fds = size % (HOLD_FDS_MAX + 1);
        for (size_t i = 0; i < n_fds; i++)
            ck_assert_int_ge(fds[i] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3), 0);
        ck_assert_int_eq(put(1, text, size, fds, n_fds), 0);
        const struct message_record *held = the_one();
        ck_assert_uint_eq(held->size, size);
        ck_assert_mem_eq(held->bytes, text, size);
        ck_assert_uint_eq(held->n_fds, n_fds);
        ck_assert_mem_eq(message.fds, fds, n_fds * sizeof(int));
    }
    ck_assert_uint_eq(holdings.ids.n_touched, 1);
}

TEST(what_is_replaced_or_removed_is_closed)
{
    int fds[2] = {fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3),
                  fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)};

    ck_assert_int_eq(put(1, "", 0, &fds[0], 1), 0);
    ck_assert_int_eq(put(1, "", 0, &fds[1], 1), 0);
    ck_assert_int_eq(fcntl(fds[0], F_GETFD), -1);
    ck_assert_int_eq(fcntl(fds[1], F_GETFD), FD_CLOEXEC);
    holdings_remove(&holdings, 1);
    holdings_remove(&holdings, 1);
    ck_assert_int_eq(fcntl(fds[1], F_GETFD), -1);
    ck_assert(!holdings_has(&holdings, 1));
}

TEST(a_hold_that_lacks_descriptors_or_an_id_is_refused)
{
    const int fds[2] = {-1, -1};

    ck_assert_int_eq(put(1, "", 0, fds, 2), 0);
    (void)message_begin(&message, MESSAGE_HOLD, 1);
    ck_assert_int_eq(message_put_held(&message, "", 0, fds, 2), 0);
    message.n_fds--;
    ck_assert_int_eq(holdings_put(&holdings, &message), -EBADMSG);
    ck_assert(!holdings_has(&holdings, 1));
    ck_assert_int_eq(put(0, "", 0, NULL, 0), -EBADMSG);
}

TEST(replacing_keeps_how_the_process_ended)
{
    ck_assert_int_eq(put(1, "", 0, NULL, 0), 0);
    holdings_end(&holdings, 1, &(struct spawn_exit){.code = 3});
    ck_assert_int_eq(put(1, "x", 1, NULL, 0), 0);
    ck_assert(the_one()->ended);
    ck_assert_int_eq(the_one()->how.code, 3);
    holdings_remove(&holdings, 1);
    ck_assert_int_eq(put(1, "", 0, NULL, 0), 0);
    ck_assert(!the_one()->ended);
}

TEST(a_full_table_refuses_and_has_room_again_after_a_removal)
{
    uint64_t id;

    for (id = 1; id <= ID_TABLE_MAX; id++)
        ck_assert_int_eq(put(id << 32 | id, "", 0, NULL, 0), 0);
    ck_assert_int_eq(put(id, "", 0, NULL, 0), -ENOSPC);
    holdings_remove(&holdings, UINT64_C(5) << 32 | 5);
    ck_assert_int_eq(put(id, "", 0, NULL, 0), 0);
}

TEST(clients_get_a_share_of_the_descriptors_and_processes_the_rest)
{
    const int fds[5] = {-1, -1, -1, -1, -1};

    holdings.client_fds_max = 10;
    ck_assert_int_eq(put(1, "", 0, fds, 5), 0);
    ck_assert_int_eq(put(2, "", 0, fds, 4), 0);
    ck_assert_int_eq(put(2, "", 0, fds, 5), 0);
    ck_assert_int_eq(put(3, "", 0, fds, 1), -EMFILE);
    ck_assert(!holdings_has(&holdings, 3));
    ck_assert_int_eq(put_for(1, 4, "", 0, fds, 5), 0);
    holdings_remove(&holdings, 4);
    ck_assert_int_eq(put(3, "", 0, fds, 1), -EMFILE);
    holdings_remove(&holdings, 1);
    ck_assert_int_eq(put(3, "", 0, fds, 5), 0);
}

const struct suite suite = {.setup = setup, .teardown = teardown};

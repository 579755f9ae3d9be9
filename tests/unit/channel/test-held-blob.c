/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/held-blob.h"
#include "supervisor/message/envelope.h"
#include "tests/unit/suite.h"

static struct blob_quota quota;
static struct blob_share *share, *other;

static void setup(void)
{
    blob_quota_init(&quota);
    share = blob_share_new(&quota);
    other = blob_share_new(&quota);
}

static void teardown(void)
{
    ck_assert_uint_eq(quota.n, 0);
    (void)blob_share_unref(share);
    (void)blob_share_unref(other);
}

static int new_fd(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* As many as the share may have, at most 100. */
static unsigned fill(struct held_blob **blobs, struct blob_share *of)
{
    unsigned n = 0;

    while (n < 100 && held_blob_new(&blobs[n], of, -1, 1, true) == 0)
        n++;
    return n;
}

TEST(a_sender_leaves_as_much_as_it_takes)
{
    struct held_blob *mine[100], *others[100];

    quota.max = 60;
    unsigned n_mine = fill(mine, share);
    unsigned n_others = fill(others, other);
    ck_assert_uint_eq(n_mine, 30);
    ck_assert_uint_eq(n_others, 15);
    (void)held_blob_unref(mine[--n_mine]);
    ck_assert_int_eq(held_blob_new(&mine[n_mine], share, -1, 1, true), HELD_BLOB_E_QUOTA);
    while (n_others > 0)
        (void)held_blob_unref(others[--n_others]);
    ck_assert_int_eq(held_blob_new(&mine[n_mine], share, -1, 1, true), 0);
    n_mine++;
    while (n_mine > 0)
        (void)held_blob_unref(mine[--n_mine]);
}

TEST(bytes_beyond_the_bound_of_one_sender_leave_room_for_others)
{
    quota.bytes_max = 400;
    blob_share_charge(share, 150);
    ck_assert(blob_share_has_room(share, 50));
    blob_share_charge(share, 350); /* more than all */
    ck_assert(!blob_share_has_room(share, 0));
    ck_assert(blob_share_has_room(other, 100));
    ck_assert(!blob_share_has_room(other, 101));
    blob_share_charge(other, 100);
    blob_share_discharge(share, 350);
    blob_share_discharge(share, 150);
    ck_assert(blob_share_has_room(other, 100));
    blob_share_discharge(other, 100);
    ck_assert_uint_eq(quota.bytes, 0);
}

TEST(a_share_in_the_place_of_another_has_an_owner_of_its_own)
{
    const uint64_t owner = share->owner;

    ck_assert_uint_ne(other->owner, owner);
    (void)blob_share_unref(share);
    share = blob_share_new(&quota);
    ck_assert_uint_ne(share->owner, owner);
}

TEST(a_user_that_comes_again_has_the_share_with_its_earlier_payloads)
{
    struct held_blob *blobs[100];
    unsigned n = 0;

    quota.max = 60;
    for (int i = 0; i < 5; i++) {
        struct blob_share *user = blob_share_of(&quota, 4711);

        n += fill(blobs + n, user);
        (void)blob_share_unref(user);
    }
    ck_assert_uint_eq(n, 30);
    while (n > 0)
        (void)held_blob_unref(blobs[--n]);
}

TEST(a_high_number_shows_that_few_descriptors_are_left)
{
    struct held_blob *blob;
    int fd = new_fd();

    quota.fd_max = fd;
    ck_assert_int_eq(held_blob_new(&blob, share, fd, 1, true), HELD_BLOB_E_QUOTA);
    quota.fd_max = fd + 1;
    ck_assert_int_eq(held_blob_new(&blob, share, fd, 1, true), 0);
    (void)held_blob_unref(blob);
    ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
}

TEST(the_copies_of_a_message_share_one_descriptor)
{
    const struct topic topic = {.type = "t", .type_size = 1};
    struct envelope *envelope = envelope_new(0, &topic), *copies[8];
    struct held_blob *blob;
    int fd = new_fd();

    ck_assert_int_eq(held_blob_new(&blob, share, fd, 1 << 20, true), 0);
    payload_set_shared(&envelope->payload, blob);
    for (int i = 0; i < 8; i++) {
        copies[i] = envelope_copy(envelope);
        ck_assert_int_eq(copies[i]->payload.fd, fd);
        ck_assert_uint_eq(copies[i]->payload.size, 1 << 20);
    }
    ck_assert_uint_eq(quota.n, 1);
    (void)envelope_free(envelope);
    for (int i = 0; i < 8; i++) {
        ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
        (void)envelope_free(copies[i]);
    }
    ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
}

TEST(a_share_outlives_its_owner_until_its_last_blob_is_gone)
{
    struct blob_share *brief = blob_share_new(&quota);
    struct held_blob *blob;

    ck_assert_int_eq(held_blob_new(&blob, brief, -1, 1, true), 0);
    (void)blob_share_unref(brief);
    ck_assert_uint_eq(blob->share->n, 1);
    (void)held_blob_unref(blob);
}

const struct suite suite = {.setup = setup, .teardown = teardown};

/* SPDX-License-Identifier: MIT */
#include "tests/unit/suite.h"
#include "worker/base/sized.h"

/* Three layouts of a struct, the middle one the library's. */
struct first {
    size_t struct_size;
    uint64_t a;
};

struct now {
    size_t struct_size;
    uint64_t a, b;
};

struct next {
    size_t struct_size;
    uint64_t a, b, c;
};

#define DEFAULTS                                                                                   \
    (struct now)                                                                                   \
    {                                                                                              \
        .struct_size = sizeof(struct now), .a = 1, .b = 2                                          \
    }

static int take(const void *given, struct now *ret)
{
    struct now room = DEFAULTS;
    const void *view = given;
    int r = sized_take(&view, &room, sizeof(room), sizeof(struct first));

    if (r == 0)
        *ret = *(const struct now *)view;
    return r;
}

TEST(what_an_older_program_does_not_know_has_its_default)
{
    const struct first older = {sizeof(older), 7};
    struct now now;

    ck_assert_int_eq(take(NULL, &now), 0);
    ck_assert(now.a == 1 && now.b == 2);
    ck_assert_int_eq(take(&older, &now), 0);
    ck_assert(now.a == 7 && now.b == 2);
}

TEST(what_the_library_does_not_know_must_be_zero)
{
    struct next newer = {sizeof(newer), 7, 8, 0};
    struct now now;

    ck_assert_int_eq(take(&newer, &now), 0);
    ck_assert(now.a == 7 && now.b == 8);
    newer.c = UINT64_C(1) << 63;
    ck_assert_int_eq(take(&newer, &now), -E2BIG);
}

TEST(a_size_that_cannot_be_is_refused)
{
    struct now now = DEFAULTS, ret;

    now.struct_size = 0;
    ck_assert_int_eq(take(&now, &ret), -EINVAL);
    ck_assert_int_eq(sized_check(&now, sizeof(struct first)), -EINVAL);
    now.struct_size = SIZE_MAX;
    ck_assert_int_eq(take(&now, &ret), -E2BIG);
    ck_assert_int_eq(sized_check(&now, sizeof(struct first)), -E2BIG);
}

TEST(a_result_is_filled_in_as_far_as_the_program_knows_it)
{
    const struct now now = {sizeof(now), 7, 8};
    struct now older = {sizeof(struct first), 1, 2};
    struct next newer = {sizeof(newer), 1, 2, 3};

    sized_give(&older, &now, sizeof(now));
    ck_assert(older.struct_size == sizeof(struct first) && older.a == 7 && older.b == 2);
    sized_give(&newer, &now, sizeof(now));
    ck_assert(newer.struct_size == sizeof(newer) && newer.a == 7 && newer.b == 8 && newer.c == 0);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/pool-private.h"
#include "tests/unit/suite.h"

/* The slots out of six that go when slot 2 dies, as bits. */
static unsigned taken(enum config_strategy strategy)
{
    unsigned set = 0;

    for (unsigned i = 0; i < 6; i++)
        set |= (unsigned)pool_strategy_takes(strategy, 2, i) << i;
    return set;
}

TEST(one_for_one_takes_nobody_along)
{
    ck_assert_uint_eq(taken(CONFIG_ONE_FOR_ONE), 0);
}

TEST(one_for_all_takes_all_others_along)
{
    ck_assert_uint_eq(taken(CONFIG_ONE_FOR_ALL), 0x3b);
}

TEST(rest_for_one_takes_those_above_along)
{
    ck_assert_uint_eq(taken(CONFIG_REST_FOR_ONE), 0x38);
}

const struct suite suite = {.name = "strategy"};

/* SPDX-License-Identifier: MIT */
#include "tests/unit/suite.h"
#include "worker/examples/bank/ledger.h"

static char directory[] = "/tmp/test-ledger-XXXXXX", path[64];
static struct ledger ledger;

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/l", directory);
    ck_assert_int_eq(ledger_open(&ledger, path), 0);
}

static void teardown(void)
{
    ledger_close(&ledger);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(directory), 0);
}

static struct ledger_entry apply(const char *id, decimal_t amount)
{
    struct ledger_entry entry;

    ck_assert_int_eq(ledger_apply(&ledger, id, amount, &entry), 0);
    ck_assert_str_eq(entry.id, id);
    return entry;
}

static decimal_t balance(void)
{
    decimal_t amount;

    ck_assert_int_eq(ledger_balance(&ledger, &amount), 0);
    return amount;
}

TEST(test_overdraft_is_refused_written_down_and_changes_nothing)
{
    char text[200];

    apply("a", 1000);
    struct ledger_entry entry = apply("b", -1001);
    ck_assert_int_eq(entry.outcome, LEDGER_INSUFFICIENT);
    ck_assert_int_eq(entry.balance, 1000);
    ck_assert_int_eq(balance(), 1000);
    ck_assert_int_eq(ledger_print(&ledger, text, sizeof(text)), 0);
    ck_assert_str_eq(text, "a 10.00 10.00 done\nb -10.01 10.00 insufficient-funds\n");
    /* Final, also when there is money by now. */
    apply("c", 1000);
    ck_assert_int_eq(apply("b", -1001).outcome, LEDGER_INSUFFICIENT);
    ck_assert_int_eq(apply("d", -2000).balance, 0);
}

TEST(test_balance_never_overflows)
{
    apply("a", INT64_MAX);
    ck_assert_int_eq(apply("b", 1).outcome, LEDGER_TOO_LARGE);
    ck_assert_int_eq(balance(), INT64_MAX);
}

TEST(test_void_operation_is_never_done_and_a_done_one_is_not_made_void)
{
    struct ledger_entry entry;

    apply("a", 1000);
    ck_assert_int_eq(ledger_void(&ledger, "b", &entry), 0);
    ck_assert_int_eq(entry.outcome, LEDGER_VOID);
    ck_assert_int_eq(apply("b", -1).outcome, LEDGER_VOID);
    ck_assert_int_eq(ledger_void(&ledger, "a", &entry), 0);
    ck_assert_int_eq(entry.outcome, LEDGER_DONE);
    ck_assert_int_eq(balance(), 1000);
}

TEST(test_log_is_there_when_it_is_opened_again)
{
    apply("a", 1000);
    ledger_close(&ledger);
    ck_assert_int_eq(ledger_open(&ledger, path), 0);
    ck_assert_int_eq(balance(), 1000);
    ck_assert_int_eq(apply("a", 1000).balance, 1000);
}

const struct suite suite = {.setup = setup, .teardown = teardown};

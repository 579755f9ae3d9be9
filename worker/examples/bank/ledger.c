/* SPDX-License-Identifier: MIT */
#include "worker/examples/bank/ledger.h"

#include <stdio.h>

int ledger_open(struct ledger *ret, const char *path)
{
    return database_open(&ret->database, path,
                         "CREATE TABLE IF NOT EXISTS entries ("
                         " sequence INTEGER PRIMARY KEY,"
                         " id TEXT NOT NULL UNIQUE,"
                         " amount INTEGER NOT NULL,"
                         " balance INTEGER NOT NULL,"
                         " outcome INTEGER NOT NULL)");
}

void ledger_close(struct ledger *ledger)
{
    database_close(&ledger->database);
}

const char *ledger_outcome_name(enum ledger_outcome outcome)
{
    static const char *const names[] = {
        [LEDGER_DONE] = "done",
        [LEDGER_INSUFFICIENT] = "insufficient-funds",
        [LEDGER_VOID] = "void",
        [LEDGER_TOO_LARGE] = "too-large",
    };

    return names[outcome];
}

static void read_balance(sqlite3_stmt *row, void *userdata)
{
    *(decimal_t *)userdata = sqlite3_column_int64(row, 0);
}

int ledger_balance(struct ledger *ledger, decimal_t *ret)
{
    int r;

    *ret = 0;
    r = database_run(&ledger->database,
                     "SELECT balance FROM entries ORDER BY sequence DESC LIMIT 1", read_balance,
                     ret, "");
    return r < 0 ? r : 0;
}

static void read_entry(sqlite3_stmt *row, void *userdata)
{
    struct ledger_entry *entry = userdata;

    database_text(row, 0, entry->id, sizeof(entry->id));
    entry->amount = sqlite3_column_int64(row, 1);
    entry->balance = sqlite3_column_int64(row, 2);
    entry->outcome = (enum ledger_outcome)sqlite3_column_int(row, 3);
}

#define COLUMNS "id, amount, balance, outcome"

/* Returns 1 if it exists. */
static int find(struct ledger *ledger, const char *id, struct ledger_entry *ret)
{
    return database_run(&ledger->database, "SELECT " COLUMNS " FROM entries WHERE id = ?",
                        read_entry, ret, "s", id);
}

static int add(struct ledger *ledger, const struct ledger_entry *entry)
{
    int r = database_run(&ledger->database, "INSERT INTO entries (" COLUMNS ") VALUES (?, ?, ?, ?)",
                         NULL, NULL, "siii", entry->id, entry->amount, entry->balance,
                         (int64_t)entry->outcome);

    return r < 0 ? r : 0;
}

/* One statement is one transaction: it is on disk when it has returned. */
int ledger_apply(struct ledger *ledger, const char *id, decimal_t amount, struct ledger_entry *ret)
{
    decimal_t balance;
    int r;

    r = find(ledger, id, ret);
    if (r < 0)
        return r;
    if (r > 0)
        return ret->amount == amount || ret->outcome == LEDGER_VOID ? 0 : LEDGER_E_OTHER;
    r = ledger_balance(ledger, &balance);
    if (r < 0)
        return r;
    *ret = (struct ledger_entry){.amount = amount, .balance = balance, .outcome = LEDGER_DONE};
    snprintf(ret->id, sizeof(ret->id), "%s", id);
    if (decimal_add(balance, amount, &ret->balance) < 0)
        ret->outcome = LEDGER_TOO_LARGE;
    else if (ret->balance < 0)
        ret->outcome = LEDGER_INSUFFICIENT;
    if (ret->outcome != LEDGER_DONE)
        ret->balance = balance;
    return add(ledger, ret);
}

int ledger_void(struct ledger *ledger, const char *id, struct ledger_entry *ret)
{
    int r;

    r = find(ledger, id, ret);
    if (r != 0)
        return r < 0 ? r : 0;
    *ret = (struct ledger_entry){.outcome = LEDGER_VOID};
    snprintf(ret->id, sizeof(ret->id), "%s", id);
    r = ledger_balance(ledger, &ret->balance);
    return r < 0 ? r : add(ledger, ret);
}

struct text {
    char *at;
    size_t left;
};

static void print_entry(sqlite3_stmt *row, void *userdata)
{
    struct text *text = userdata;
    char amount[DECIMAL_TEXT], balance[DECIMAL_TEXT];
    struct ledger_entry entry;
    int n;

    read_entry(row, &entry);
    n = snprintf(text->at, text->left, "%s %s %s %s\n", entry.id,
                 decimal_format(entry.amount, amount), decimal_format(entry.balance, balance),
                 ledger_outcome_name(entry.outcome));
    if (n < 0 || (size_t)n >= text->left)
        n = 0;
    text->at += n;
    text->left -= (size_t)n;
    *text->at = '\0';
}

int ledger_print(struct ledger *ledger, char *text, size_t size)
{
    struct text rest = {.at = text, .left = size};
    int r;

    *text = '\0';
    r = database_run(&ledger->database, "SELECT " COLUMNS " FROM entries ORDER BY sequence",
                     print_entry, &rest, "");
    return r < 0 ? r : 0;
}

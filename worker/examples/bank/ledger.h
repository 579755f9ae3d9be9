/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An account's log: operations that were done or refused, each under its id. An operation that is
 * already in the log is not done again: its entry is the answer.
 */

#include "worker/examples/bank/database.h"
#include "worker/examples/bank/decimal.h"
#include <stddef.h>

#define LEDGER_ID 80 /* bytes of an operation's id, with its NUL */

enum ledger_outcome {
    LEDGER_DONE,
    LEDGER_INSUFFICIENT, /* refused: the balance is below the amount */
    LEDGER_VOID,         /* refused: declared void before it arrived */
    LEDGER_TOO_LARGE,    /* refused: no balance can be that large */
};

struct ledger {
    struct database database;
};

struct ledger_entry {
    char id[LEDGER_ID];
    decimal_t amount;  /* below 0: withdrawn */
    decimal_t balance; /* after it */
    enum ledger_outcome outcome;
};

/* 0 or -EIO. */
int ledger_open(struct ledger *ret, const char *path);
void ledger_close(struct ledger *ledger);

enum {
    _LEDGER_E_SUCCESS,
    LEDGER_E_OTHER, /* the id is that of another operation */
};

/*
 * Does an operation, or refuses it, and logs it: when this returns, the entry is on disk. `*ret` is
 * the new or the existing entry. 0, LEDGER_E_OTHER (nothing is done) or -EIO.
 */
int ledger_apply(struct ledger *ledger, const char *id, decimal_t amount, struct ledger_entry *ret);

/* Declares an operation void, so that it cannot be done later. `*ret` is the new or the existing
 * entry, even if that was done. */
int ledger_void(struct ledger *ledger, const char *id, struct ledger_entry *ret);

int ledger_balance(struct ledger *ledger, decimal_t *ret);

/* All entries in their order, one a line: "ID AMOUNT BALANCE OUTCOME". Cut where `size` ends. */
int ledger_print(struct ledger *ledger, char *text, size_t size);

/* "done", "insufficient-funds", "void", "too-large". */
const char *ledger_outcome_name(enum ledger_outcome outcome);

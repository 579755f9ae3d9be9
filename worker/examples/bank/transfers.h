/* SPDX-License-Identifier: MIT */
#pragma once

/* The bank's own log: how far each transfer has got. */

#include "worker/examples/bank/database.h"
#include "worker/examples/bank/decimal.h"
#include "worker/examples/bank/words.h"

enum transfer_state {
    TRANSFER_BEGUN,     /* whether the money was withdrawn is for the account to say */
    TRANSFER_WITHDRAWN, /* and must be deposited, here or there */
    TRANSFER_DONE,
    TRANSFER_REFUSED,     /* by the source: nothing was moved */
    TRANSFER_NOT_STARTED, /* interrupted before the withdrawal, which cannot be done any more */
    TRANSFER_ROLLED_BACK, /* the target refused; the source has its money again */
};

struct transfer {
    char id[WORDS_ID];
    char source[WORDS_NAME], target[WORDS_NAME];
    decimal_t amount;
    enum transfer_state state;
    int64_t attempt;         /* counts beginnings: makes the ids of its operations */
    char reason[WORDS_TEXT]; /* why it was refused: the account's reply */
};

struct transfers {
    struct database database;
};

/* All return 0 or -EIO. */
int transfers_open(struct transfers *ret, const char *path);
void transfers_close(struct transfers *transfers);

/* 1 when there is one of that id. */
int transfers_find(struct transfers *transfers, const char *id, struct transfer *ret);

/* Adds it, or writes down how it has changed. On disk when this returns. */
int transfers_put(struct transfers *transfers, const struct transfer *transfer);

/* One whose end is open; 1 when there is one. */
int transfers_next_open(struct transfers *transfers, struct transfer *ret);

/* "begun", "withdrawn", "done", "refused", "not-started", "rolled-back". */
const char *transfer_state_name(enum transfer_state state);

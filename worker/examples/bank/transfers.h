/* SPDX-License-Identifier: MIT */
#pragma once

/* The bank's own log: the progress of each transfer. */

#include "worker/examples/bank/database.h"
#include "worker/examples/bank/decimal.h"
#include "worker/examples/bank/words.h"

enum transfer_state {
    TRANSFER_BEGUN,     /* only the account knows whether the money was withdrawn */
    TRANSFER_WITHDRAWN, /* and must be deposited, here or there */
    TRANSFER_DONE,
    TRANSFER_REFUSED,     /* by the source: nothing was moved */
    TRANSFER_NOT_STARTED, /* interrupted before the withdrawal, which is now void */
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

/* All functions return 0 or -EIO. */
int transfers_open(struct transfers *ret, const char *path);
void transfers_close(struct transfers *transfers);

/* Returns 1 if there is one with that id. */
int transfers_find(struct transfers *transfers, const char *id, struct transfer *ret);

/* Adds it, or logs its change, which is on disk when this returns. */
int transfers_put(struct transfers *transfers, const struct transfer *transfer);

/* Finds a transfer that has not ended; returns 1 if there is one. */
int transfers_next_open(struct transfers *transfers, struct transfer *ret);

/* "begun", "withdrawn", "done", "refused", "not-started", "rolled-back". */
const char *transfer_state_name(enum transfer_state state);

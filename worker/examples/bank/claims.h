/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The meaning of customers' ids: an id permanently belongs to the first operation that used it, for
 * all accounts.
 */

#include "worker/examples/bank/database.h"

enum {
    _CLAIMS_E_SUCCESS,
    CLAIMS_E_TAKEN, /* the id belongs to another operation */
};

/* 0 or -EIO. */
int claims_open(struct database *database);

/* Assigns a free id to `what`. 0, CLAIMS_E_TAKEN or -EIO. */
int claims_take(struct database *database, const char *id, const char *what);

/* 1 if the id is assigned, 0, or -EIO. */
int claims_find(struct database *database, const char *id);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What customers' ids stand for: an id belongs for good to the first operation that came with it,
 * whichever account that is about.
 */

#include "worker/examples/bank/database.h"

enum {
    _CLAIMS_E_SUCCESS,
    CLAIMS_E_TAKEN, /* the id stands for something else */
};

/* 0 or -EIO. */
int claims_open(struct database *database);

/* Has the id stand for `what`, if it does not yet stand for anything. 0, CLAIMS_E_TAKEN or -EIO. */
int claims_take(struct database *database, const char *id, const char *what);

/* 1 when the id stands for something, 0, or -EIO. */
int claims_find(struct database *database, const char *id);

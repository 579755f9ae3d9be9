/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What clients make the supervisor hold in memory: requests that are not complete or not begun, and
 * answers that are not read. Each user has an account, and those who may only look have little of
 * it together, so that none of them takes what the others need.
 *
 * The members of AdminGroup= are told apart from other processes of the same user.
 */

#include "shared/base/list.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum account_kind {
    ACCOUNT_REQUESTS,
    ACCOUNT_ANSWERS,
    _ACCOUNT_N_KINDS,
};

struct blob_quota;
struct blob_share;

struct accounts {
    struct blob_quota *blobs; /* borrowed */
    struct list users;
    size_t held[2][_ACCOUNT_N_KINDS]; /* [may_change]; bytes, of all users together */
};

struct account {
    struct list link;
    struct accounts *accounts;
    unsigned references;
    uid_t uid;
    bool may_change;
    size_t held[_ACCOUNT_N_KINDS];
    struct blob_share *blobs; /* of what its attached clients send */
};

void accounts_init(struct accounts *accounts, struct blob_quota *blobs);

/* The account of that user, with a reference more; NULL when out of memory. */
struct account *account_get(struct accounts *accounts, uid_t uid, bool may_change);
/* Drops the reference; NULL allowed; returns NULL. */
struct account *account_put(struct account *account);

/*
 * Somebody who holds `*held` bytes is going to hold `size`, which is noted in `*held`. False, and
 * nothing changes, if the user or all of them would hold too much; less is always fine.
 */
bool account_resize(struct account *account, enum account_kind kind, size_t *held, size_t size);

/* Moves what is held from one account to another of the same user, whatever the bounds say. */
void account_move(struct account *from, struct account *to, enum account_kind kind, size_t held);

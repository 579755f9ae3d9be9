/* SPDX-License-Identifier: MIT */
#pragma once

/* Memory that the supervisor holds for clients: requests that are incomplete or not begun, and
 * replies that have not been read. All users without permission to change things share a small
 * total, so that they cannot use up the memory of the others. A user has no more of a total than
 * remains free for all others, so no number of users takes all of it.
 *
 * A user has two accounts if some of its processes are members of AdminGroup= and others are not.
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
    struct blob_share *blobs; /* that payloads of its attached clients count in */
    struct list places[2];    /* of its connections: idle, and [true] at work; the longest first */
    unsigned n_places;
    unsigned n_leaving; /* connections that have ended, of clients that are not done yet */
};

void accounts_init(struct accounts *accounts, struct blob_quota *blobs);

/* A new reference to the account of that user; NULL when out of memory. */
struct account *account_get(struct accounts *accounts, uid_t uid, bool may_change);
/* Drops the reference; NULL allowed; returns NULL. */
struct account *account_put(struct account *account);

/* Resizes a buffer, of which `*allocated` bytes are charged to the account. `size` is not 0.
 * Returns 0, -EDQUOT if that exceeds a bound, or -ENOMEM. */
int account_realloc(struct account *account, enum account_kind kind, char **data, size_t *allocated,
                    size_t size);
void account_free(struct account *account, enum account_kind kind, char **data, size_t *allocated);

/* Adds a connection's place to those of its user. The caller owns `place`, and removes it before it
 * ends. It is idle at first: a place at work is lost only if none is idle. */
void account_enter(struct account *account, struct list *place);
/* The connection has ended, but its client is not done: the place counts for the user, and nobody
 * can take it. Returns whether account_left() is due. Harmless if the place was not added. */
bool account_begin_leave(struct account *account, struct list *place);
void account_left(struct account *account);
/* Removes a place. Harmless if it was not added. */
void account_leave(struct account *account, struct list *place);
/* Call it when the connection begins or ends work. Harmless if its place was not added. */
void account_set_at_work(struct account *account, struct list *place, bool at_work);

/* Returns a place that a new connection of `account` may take, or NULL: one of the user with the
 * most, if that has at least two more than `account`. Clients that may change things lose places
 * only to each other, and none that is at work. */
struct list *account_find_place(const struct account *account);

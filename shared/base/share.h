/* SPDX-License-Identifier: MIT */
#pragma once

/* Fair shares of a bounded store. Each entry belongs to an owner, for example a group. Either an
 * owner with at least an equal share loses its oldest entry when the store is full, so a flood of
 * one owner displaces only its own entries: share_victim(). Or no owner gets more than remains free
 * for all others: share_permits(). */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of amounts, each bounded by itself; the store defines them. */
#define SHARE_KINDS 4

struct share {
    struct shares *shares;
    struct list link; /* in the store's list of shares */
    size_t references;
    struct index_entry by_owner;
    uint64_t used[SHARE_KINDS];
    struct list entries[SHARE_KINDS]; /* oldest first; the store links them */
    char owner[];
};

struct shares {
    struct list all;
    struct index by_owner;
    size_t n;
    uint64_t used[SHARE_KINDS];
    struct share *hand; /* where the last victim was found; NULL = none */
};

void shares_init(struct shares *shares);
void shares_deinit(struct shares *shares); /* no share is left */

/* Frees all shares, whatever refers to them. */
void shares_clear(struct shares *shares);

/* Returns a reference to the owner's share, which is made if necessary; NULL when out of memory.
 * Each entry holds one. The last reference frees the share, which must be empty. */
struct share *share_get(struct shares *shares, const char *owner, size_t size);
struct share *share_unref(struct share *share); /* NULL allowed; returns NULL */

/* Returns whether there is room for `more` of this kind: `max` is for all owners together. */
bool share_permits(const struct share *share, unsigned kind, uint64_t more, uint64_t max);
void share_add(struct share *share, unsigned kind, uint64_t amount);
void share_sub(struct share *share, unsigned kind, uint64_t amount);

/* Returns a non-empty share that is at least an equal one of this kind; NULL = all are empty. */
struct share *share_victim(struct shares *shares, unsigned kind);

/* The size of the group in an actor's address: "group", "group/0". All clients ("@3") are one. */
size_t share_owner_size(const char *address);

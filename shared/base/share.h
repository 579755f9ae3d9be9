/* SPDX-License-Identifier: MIT */
#pragma once

/* Fair shares of a bounded store. Every entry belongs to an owner, a group for example. When the
 * store is full, an owner that has at least an equal share of it loses its oldest entry: a flood of
 * one owner's entries displaces its own, and leaves everybody else's alone. */

#include "shared/base/index.h"
#include "shared/base/list.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is bounded, each by itself; what they mean is the store's business. */
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

/* A reference to the share of an owner, made if need be; NULL when out of memory. Each entry has
 * one for as long as it lives. A share goes with its last reference, empty. */
struct share *share_get(struct shares *shares, const char *owner, size_t size);
struct share *share_unref(struct share *share); /* NULL allowed; returns NULL */

void share_add(struct share *share, unsigned kind, uint64_t amount);
void share_sub(struct share *share, unsigned kind, uint64_t amount);

/* One that has at least an equal share of this kind, and something at all. NULL = nobody has. */
struct share *share_victim(struct shares *shares, unsigned kind);

/* The size of the group in an actor's address: "group", "group/0". All clients ("@3") are one. */
size_t share_owner_size(const char *address);

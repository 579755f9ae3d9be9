/* SPDX-License-Identifier: MIT */
#include "shared/base/share.h"
#include "shared/base/hash.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define share_of(node) list_entry(node, struct share, link)

void shares_init(struct shares *shares)
{
    *shares = (struct shares){0};
    list_init(&shares->all);
}

void shares_deinit(struct shares *shares)
{
    assert(list_empty(&shares->all));
    index_deinit(&shares->by_owner);
}

void shares_clear(struct shares *shares)
{
    list_for_each_safe (node, &shares->all)
        free(share_of(node));
    index_clear(&shares->by_owner);
    shares_init(shares);
}

static struct share *share_find(const struct shares *shares, uint64_t key, const char *owner,
                                size_t size)
{
    index_for_each_entry (share, &shares->by_owner, key, struct share, by_owner)
        if (strlen(share->owner) == size && memcmp(share->owner, owner, size) == 0)
            return share;
    return NULL;
}

static struct share *share_new(struct shares *shares, uint64_t key, const char *owner, size_t size)
{
    struct share *share = calloc(1, sizeof(*share) + size + 1);

    if (!share)
        return NULL;
    memcpy(share->owner, owner, size);
    share->shares = shares;
    for (unsigned i = 0; i < SHARE_KINDS; i++)
        list_init(&share->entries[i]);
    list_push_back(&shares->all, &share->link);
    index_add(&shares->by_owner, &share->by_owner, key);
    shares->n++;
    return share;
}

struct share *share_get(struct shares *shares, const char *owner, size_t size)
{
    const uint64_t key = hash_bytes(owner, size);
    struct share *share = share_find(shares, key, owner, size);

    if (!share)
        share = share_new(shares, key, owner, size);
    if (share)
        share->references++;
    return share;
}

static struct share *share_next(const struct shares *shares, const struct share *share)
{
    const struct list *node = share ? share->link.next : shares->all.next;

    return share_of(node == &shares->all ? node->next : node);
}

struct share *share_unref(struct share *share)
{
    struct shares *shares;

    if (!share || --share->references > 0)
        return NULL;
    shares = share->shares;
    if (shares->hand == share)
        shares->hand = shares->n > 1 ? share_next(shares, share) : NULL;
    list_unlink(&share->link);
    index_remove(&shares->by_owner, &share->by_owner);
    shares->n--;
    free(share);
    return NULL;
}

bool share_permits(const struct share *share, unsigned kind, uint64_t more, uint64_t max)
{
    const uint64_t all = share->shares->used[kind], own = share->used[kind];

    return more <= max && all <= max - more && own <= max - more - (own > 0 ? all : 0);
}

void share_add(struct share *share, unsigned kind, uint64_t amount)
{
    share->used[kind] += amount;
    share->shares->used[kind] += amount;
}

void share_sub(struct share *share, unsigned kind, uint64_t amount)
{
    share->used[kind] -= amount;
    share->shares->used[kind] -= amount;
}

struct share *share_victim(struct shares *shares, unsigned kind)
{
    struct share *share = shares->hand;

    if (shares->used[kind] == 0)
        return NULL;
    if (!share)
        share = share_next(shares, NULL);
    /* At least one share has the average or more. The hand stays there, so a flood from one owner
     * causes only one search. */
    while (share->used[kind] * shares->n < shares->used[kind])
        share = share_next(shares, share);
    shares->hand = share;
    return share;
}

size_t share_owner_size(const char *address)
{
    return *address == '@' ? 1 : strcspn(address, "/");
}

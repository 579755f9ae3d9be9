/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/held-blob.h"

#include "shared/base/cleanup.h"
#include "supervisor/loop/closer.h"
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

/* Freeing this many bytes takes about as long as handing the descriptor to another thread. */
#define CLOSED_HERE_MAX ((uint64_t)256 << 10)

void blob_quota_init(struct blob_quota *quota)
{
    *quota = (struct blob_quota){.max = UINT64_MAX, .bytes_max = UINT64_MAX, .fd_max = INT_MAX};
}

static struct blob_share *find(const struct blob_quota *quota, uint64_t owner)
{
    struct index_entry *entry = index_find(&quota->shares, owner);

    return entry ? list_entry(entry, struct blob_share, by_owner) : NULL;
}

struct blob_share *blob_share_of(struct blob_quota *quota, uint64_t owner)
{
    struct blob_share *share = find(quota, owner);

    if (share) {
        share->references++;
        return share;
    }
    share = calloc(1, sizeof(*share));
    if (!share)
        return NULL;
    *share = (struct blob_share){.quota = quota, .references = 1, .owner = owner};
    list_init(&share->kept);
    index_add(&quota->shares, &share->by_owner, owner);
    return share;
}

struct blob_share *blob_share_new(struct blob_quota *quota)
{
    static uint64_t last_owner;

    return blob_share_of(quota, ++last_owner);
}

struct blob_share *blob_share_unref(struct blob_share *share)
{
    struct index *shares = share ? &share->quota->shares : NULL;

    if (!share || --share->references > 0)
        return NULL;
    index_remove(shares, &share->by_owner);
    if (shares->n_entries == 0)
        index_clear(shares);
    free(share);
    return NULL;
}

bool blob_share_has_room(const struct blob_share *share, uint64_t bytes)
{
    const struct blob_quota *quota = share ? share->quota : NULL;

    return !quota || (quota->bytes + bytes <= quota->bytes_max &&
                      share->bytes + bytes <= quota->bytes_max - quota->bytes - bytes);
}

/* Bytes beyond half of the bound do not count in the sum: they would leave others no room. */
static void set_bytes(struct blob_share *share, uint64_t bytes)
{
    struct blob_quota *quota = share->quota;
    const uint64_t max = quota->bytes_max / 2;

    quota->bytes += (bytes < max ? bytes : max) - (share->bytes < max ? share->bytes : max);
    share->bytes = bytes;
}

void blob_share_charge(struct blob_share *share, uint64_t bytes)
{
    share->references++;
    set_bytes(share, share->bytes + bytes);
}

void blob_share_discharge(struct blob_share *share, uint64_t bytes)
{
    set_bytes(share, share->bytes - bytes);
    (void)blob_share_unref(share);
}

static bool has_room(const struct blob_share *share)
{
    const struct blob_quota *quota = share->quota;

    return quota->n < quota->max && share->n < quota->max - quota->n;
}

int held_blob_new(struct held_blob **ret, struct blob_share *share, int fd, uint64_t size,
                  bool spare)
{
    struct blob_quota *quota = share->quota;
    struct held_blob *blob;

    while (spare && !has_room(share) && !list_empty(&share->kept))
        quota->spare(share);
    if (!has_room(share) || fd >= quota->fd_max)
        return HELD_BLOB_E_QUOTA;
    blob = malloc(sizeof(*blob));
    if (!blob)
        return -ENOMEM;
    *blob = (struct held_blob){.fd = fd, .references = 1, .size = size, .share = share};
    share->references++;
    share->n++;
    quota->n++;
    *ret = blob;
    return 0;
}

struct held_blob *held_blob_unref(struct held_blob *blob)
{
    if (--blob->references > 0)
        return NULL;
    blob->share->n--;
    blob->share->quota->n--;
    (void)blob_share_unref(blob->share);
    if (blob->size > CLOSED_HERE_MAX)
        closer_close(blob->fd);
    else
        (void)close_fd(blob->fd);
    free(blob);
    return NULL;
}

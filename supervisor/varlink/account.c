/* SPDX-License-Identifier: MIT */
#include "supervisor/varlink/account.h"

#include "shared/base/cleanup.h"
#include "supervisor/channel/held-blob.h"
#include "supervisor/loop/taker.h"
#include <errno.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)

/* [may_change], of all users together. */
static const size_t BOUNDS[2][_ACCOUNT_N_KINDS] = {
    {[ACCOUNT_REQUESTS] = 8 * MIB, [ACCOUNT_ANSWERS] = 32 * MIB},
    {[ACCOUNT_REQUESTS] = 128 * MIB, [ACCOUNT_ANSWERS] = 256 * MIB},
};

void accounts_init(struct accounts *accounts, struct blob_quota *blobs)
{
    *accounts = (struct accounts){.blobs = blobs};
    list_init(&accounts->users);
}

static struct account *find(struct accounts *accounts, uid_t uid, bool may_change)
{
    list_for_each_entry (account, &accounts->users, struct account, link)
        if (account->uid == uid && account->may_change == may_change)
            return account;
    return NULL;
}

struct account *account_get(struct accounts *accounts, uid_t uid, bool may_change)
{
    struct account *account = find(accounts, uid, may_change);

    if (!account) {
        account = calloc(1, sizeof(*account));
        if (!account)
            return NULL;
        account->blobs = blob_share_of(accounts->blobs, taker_owner_of_user(uid));
        if (!account->blobs) {
            free(account);
            return NULL;
        }
        account->accounts = accounts;
        account->uid = uid;
        account->may_change = may_change;
        list_init(&account->places[false]);
        list_init(&account->places[true]);
        list_push_back(&accounts->users, &account->link);
    }
    account->references++;
    return account;
}

struct account *account_put(struct account *account)
{
    if (account && --account->references == 0) {
        list_unlink(&account->link);
        (void)blob_share_unref(account->blobs);
        free(account);
    }
    return NULL;
}

static bool charge(struct account *account, enum account_kind kind, size_t *held, size_t size)
{
    const size_t bound = BOUNDS[account->may_change][kind];
    size_t *of_all = &account->accounts->held[account->may_change][kind];
    const size_t more = size - *held; /* wraps round when it is less */
    const size_t own = account->held[kind] + more, all = *of_all + more;

    if (size > *held && (all > bound || own > bound - all))
        return false;
    account->held[kind] += more;
    *of_all += more;
    *held = size;
    return true;
}

int account_realloc(struct account *account, enum account_kind kind, char **data, size_t *allocated,
                    size_t size)
{
    const size_t before = *allocated;
    char *place;

    if (!charge(account, kind, allocated, size))
        return -EDQUOT;
    place = realloc(*data, size);
    if (!place) {
        (void)charge(account, kind, allocated, before);
        return -ENOMEM;
    }
    *data = place;
    return 0;
}

void account_free(struct account *account, enum account_kind kind, char **data, size_t *allocated)
{
    free(TAKE_PTR(*data));
    (void)charge(account, kind, allocated, 0);
}

void account_enter(struct account *account, struct list *place)
{
    list_push_back(&account->places[false], place);
    account->n_places++;
}

bool account_begin_leave(struct account *account, struct list *place)
{
    if (!list_linked(place))
        return false;
    account_leave(account, place);
    account->n_leaving++;
    return true;
}

void account_left(struct account *account)
{
    account->n_leaving--;
}

void account_leave(struct account *account, struct list *place)
{
    if (!list_linked(place))
        return;
    list_unlink(place);
    account->n_places--;
}

void account_set_at_work(struct account *account, struct list *place, bool at_work)
{
    if (!list_linked(place))
        return;
    list_unlink(place);
    list_push_back(&account->places[at_work], place);
}

struct list *account_find_place(const struct account *account)
{
    const unsigned own = account->n_places + account->n_leaving;
    struct account *most = NULL;
    struct list *place;

    list_for_each_entry (other, &account->accounts->users, struct account, link)
        if ((!other->may_change || account->may_change) && other->n_places > own + 1 &&
            (!most || other->n_places > most->n_places))
            most = other;
    if (!most)
        return NULL;
    place = list_first(&most->places[false]);
    return place || most->may_change ? place : list_first(&most->places[true]);
}

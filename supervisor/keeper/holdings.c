/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/holdings.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <string.h>

/* ---- entries ---- */

/* Returns the link to the entry with this id, or the last link of its bucket. */
static uint32_t *link_to(struct holdings *holdings, uint64_t id)
{
    uint32_t *link = &holdings->buckets[id % HOLDINGS_BUCKETS];
    while (*link != 0 && holdings->table[*link - 1].id != id)
        link = &holdings->table[*link - 1].next;
    return link;
}

static struct holding *find(struct holdings *holdings, uint64_t id)
{
    const uint32_t number = *link_to(holdings, id);
    return number != 0 ? &holdings->table[number - 1] : NULL;
}

/* Returns a zeroed entry, or NULL. */
static struct holding *add(struct holdings *holdings, uint64_t id)
{
    uint32_t *bucket = &holdings->buckets[id % HOLDINGS_BUCKETS];
    uint32_t number = holdings->free;
    if (number != 0)
        holdings->free = holdings->table[number - 1].next;
    else if (holdings->n_touched < HOLDINGS_MAX)
        number = ++holdings->n_touched;
    else
        return NULL;
    holdings->table[number - 1] = (struct holding){.id = id, .next = *bucket};
    *bucket = number;
    return &holdings->table[number - 1];
}

/* ---- holdings ---- */

/* Closes the descriptors. */
static void drop_content(struct holdings *holdings, struct holding *holding)
{
    for (size_t i = 0; i < holding->n_fds; i++)
        (void)close_fd(holding->fds[i]);
    holdings->n_fds -= holding->n_fds;
    if (holding->pid == 0)
        holdings->n_client_fds -= holding->n_fds;
    holding->n_fds = 0;
    holding->size = 0;
}

void holdings_remove(struct holdings *holdings, uint64_t id)
{
    uint32_t *link = link_to(holdings, id);
    const uint32_t number = *link;
    if (number == 0)
        return;
    struct holding *holding = &holdings->table[number - 1];
    drop_content(holdings, holding);
    *link = holding->next;
    *holding = (struct holding){.next = holdings->free};
    holdings->free = number;
}

static int check(const struct holdings *holdings, const struct message *message)
{
    const struct message_record *hold = &message->record;
    if (hold->n_fds > HOLD_FDS_MAX || hold->n_fds != message->n_fds)
        return -EBADMSG;
    if (hold->pid != 0 || holdings->client_fds_max == 0)
        return 0;
    return holdings->n_client_fds + hold->n_fds > holdings->client_fds_max ? -EMFILE : 0;
}

int holdings_put(struct holdings *holdings, const struct message *message)
{
    const struct message_record *hold = &message->record;
    struct holding *holding = find(holdings, hold->id);
    if (hold->id == 0)
        return -EBADMSG;
    if (holding)
        drop_content(holdings, holding);
    else
        holding = add(holdings, hold->id);
    const int r = holding ? check(holdings, message) : -ENOSPC;
    if (r < 0) {
        holdings_remove(holdings, hold->id);
        return r;
    }
    holding->pid = hold->pid;
    holding->n_fds = hold->n_fds;
    holding->size = hold->size;
    memcpy(holding->fds, message->fds, hold->n_fds * sizeof(int));
    memcpy(holding->bytes, hold->bytes, hold->size);
    holdings->n_fds += hold->n_fds;
    if (hold->pid == 0)
        holdings->n_client_fds += hold->n_fds;
    return 0;
}

int holdings_replace_fd(struct holdings *holdings, uint64_t id, int fd)
{
    struct holding *holding = find(holdings, id);
    if (!holding || holding->n_fds == 0)
        return -ENOENT;
    (void)close_fd(holding->fds[0]);
    holding->fds[0] = fd;
    return 0;
}

bool holdings_has(struct holdings *holdings, uint64_t id)
{
    return find(holdings, id);
}

void holdings_end(struct holdings *holdings, uint64_t id, const struct spawn_exit *how)
{
    struct holding *holding = find(holdings, id);
    if (!holding || holding->ended)
        return;
    holding->ended = true;
    holdings->ends[holding - holdings->table] = *how;
}

bool holdings_next(const struct holdings *holdings, uint32_t *cursor, struct message *ret)
{
    while (*cursor < holdings->n_touched && holdings->table[*cursor].id == 0)
        (*cursor)++;
    if (*cursor == holdings->n_touched)
        return false;
    const struct holding *holding = &holdings->table[*cursor];
    struct message_record *record = message_begin(ret, MESSAGE_HELD, holding->id);
    record->pid = holding->pid;
    record->ended = holding->ended;
    if (holding->ended)
        record->how = holdings->ends[*cursor];
    (void)message_put_held(ret, holding->bytes, holding->size, holding->fds, holding->n_fds);
    (*cursor)++;
    return true;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/holdings.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <string.h>

static struct holding *find(struct holdings *holdings, uint64_t id)
{
    const int place = id_table_find(&holdings->ids, id);
    return place < 0 ? NULL : &holdings->at[place];
}

/* Returns a zeroed holding, or NULL. */
static struct holding *add(struct holdings *holdings, uint64_t id)
{
    const int place = id_table_add(&holdings->ids, id);
    if (place < 0)
        return NULL;
    holdings->at[place] = (struct holding){.id = id};
    return &holdings->at[place];
}

/* Closes the descriptors. */
static void drop_content(struct holdings *holdings, struct holding *holding)
{
    for (size_t i = 0; i < holding->n_fds; i++)
        (void)close_fd(holding->fds[i]);
    if (holding->pid == 0)
        holdings->n_client_fds -= holding->n_fds;
    holding->n_fds = 0;
    holding->size = 0;
}

void holdings_remove(struct holdings *holdings, uint64_t id)
{
    const int place = id_table_remove(&holdings->ids, id);
    if (place >= 0)
        drop_content(holdings, &holdings->at[place]);
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
    if (hold->pid == 0)
        holdings->n_client_fds += hold->n_fds;
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
    holdings->ends[holding - holdings->at] = *how;
}

bool holdings_next(const struct holdings *holdings, uint32_t *cursor, struct message *ret)
{
    const int place = id_table_next(&holdings->ids, *cursor);
    if (place < 0)
        return false;
    const struct holding *holding = &holdings->at[place];
    struct message_record *record = message_begin(ret, MESSAGE_HELD, holding->id);
    record->pid = holding->pid;
    record->ended = holding->ended;
    if (holding->ended)
        record->how = holdings->ends[place];
    (void)message_put_held(ret, holding->bytes, holding->size, holding->fds, holding->n_fds);
    *cursor = (uint32_t)place + 1;
    return true;
}

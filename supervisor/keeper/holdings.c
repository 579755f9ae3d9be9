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

/* ---- chains of blocks ---- */

static uint32_t take_block(struct holdings *holdings)
{
    const uint32_t number = holdings->free_blocks;
    if (number != 0)
        holdings->free_blocks = holdings->blocks[number - 1].next;
    else if (holdings->n_touched_blocks < HOLDINGS_BLOCKS_MAX)
        return ++holdings->n_touched_blocks;
    return number;
}

static void free_chain(struct holdings *holdings, uint32_t number)
{
    while (number != 0) {
        struct holdings_block *block = &holdings->blocks[number - 1];
        const uint32_t next = block->next;
        block->next = holdings->free_blocks;
        holdings->free_blocks = number;
        number = next;
    }
}

/* Where a chain is written or read. */
struct place {
    uint32_t block; /* 0 = nowhere yet */
    size_t offset;
};

/* Appends to the chain that begins with `*first`. Returns 0 or -ENOSPC. */
static int append(struct holdings *holdings, uint32_t *first, struct place *place, const void *data,
                  size_t size)
{
    while (size > 0) {
        if (place->block == 0 || place->offset == HOLDINGS_BLOCK_SIZE) {
            uint32_t *link = place->block == 0 ? first : &holdings->blocks[place->block - 1].next;
            *place = (struct place){.block = take_block(holdings)};
            *link = place->block;
            if (place->block == 0)
                return -ENOSPC;
            holdings->blocks[place->block - 1].next = 0;
        }
        const size_t room = HOLDINGS_BLOCK_SIZE - place->offset, n = size < room ? size : room;
        memcpy(holdings->blocks[place->block - 1].data + place->offset, data, n);
        place->offset += n;
        data = (const uint8_t *)data + n;
        size -= n;
    }
    return 0;
}

static void copy(const struct holdings *holdings, struct place *place, void *ret, size_t size)
{
    while (size > 0) {
        const struct holdings_block *block = &holdings->blocks[place->block - 1];
        const size_t left = HOLDINGS_BLOCK_SIZE - place->offset, n = size < left ? size : left;
        memcpy(ret, block->data + place->offset, n);
        place->offset += n;
        if (place->offset == HOLDINGS_BLOCK_SIZE)
            *place = (struct place){.block = block->next};
        ret = (uint8_t *)ret + n;
        size -= n;
    }
}

/* ---- holdings ---- */

/* Returns where the bytes are. */
static struct place read_fds(const struct holdings *holdings, const struct holding *holding,
                             int ret[HOLD_FDS_MAX])
{
    struct place place = {.block = holding->block};
    copy(holdings, &place, ret, holding->n_fds * sizeof(int));
    return place;
}

/* Closes the descriptors and frees the chain. */
static void drop_content(struct holdings *holdings, struct holding *holding)
{
    int fds[HOLD_FDS_MAX];
    (void)read_fds(holdings, holding, fds);
    for (size_t i = 0; i < holding->n_fds; i++)
        (void)close_fd(fds[i]);
    holdings->n_fds -= holding->n_fds;
    if (holding->pid == 0)
        holdings->n_client_fds -= holding->n_fds;
    free_chain(holdings, holding->block);
    holding->block = 0;
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
    struct place place = {0};
    struct holding *holding = find(holdings, hold->id);
    if (hold->id == 0)
        return -EBADMSG;
    if (holding)
        drop_content(holdings, holding);
    else
        holding = add(holdings, hold->id);
    if (!holding)
        return -ENOSPC;
    int r = check(holdings, message);
    if (r == 0)
        r = append(holdings, &holding->block, &place, message->fds, hold->n_fds * sizeof(int));
    if (r == 0)
        r = append(holdings, &holding->block, &place, hold->bytes, hold->size);
    if (r < 0) {
        holdings_remove(holdings, hold->id);
        return r;
    }
    holding->pid = hold->pid;
    holding->n_fds = hold->n_fds;
    holding->size = hold->size;
    holdings->n_fds += hold->n_fds;
    if (hold->pid == 0)
        holdings->n_client_fds += hold->n_fds;
    return 0;
}

int holdings_replace_fd(struct holdings *holdings, uint64_t id, int fd)
{
    const struct holding *holding = find(holdings, id);
    if (!holding || holding->n_fds == 0)
        return -ENOENT;
    uint8_t *first = holdings->blocks[holding->block - 1].data;
    int former;
    memcpy(&former, first, sizeof(former));
    memcpy(first, &fd, sizeof(fd));
    (void)close_fd(former);
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
    uint8_t bytes[HOLD_BYTES_MAX];
    int fds[HOLD_FDS_MAX];
    while (*cursor < holdings->n_touched && holdings->table[*cursor].id == 0)
        (*cursor)++;
    if (*cursor == holdings->n_touched)
        return false;
    const struct holding *holding = &holdings->table[*cursor];
    struct place place = read_fds(holdings, holding, fds);
    copy(holdings, &place, bytes, holding->size);
    struct message_record *record = message_begin(ret, MESSAGE_HELD, holding->id);
    record->pid = holding->pid;
    record->ended = holding->ended;
    if (holding->ended)
        record->how = holdings->ends[*cursor];
    (void)message_put_held(ret, bytes, holding->size, fds, holding->n_fds);
    (*cursor)++;
    return true;
}

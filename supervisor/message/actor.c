/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor.h"

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-requests.h"
#include "supervisor/context.h"
#include "supervisor/group/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/message/delivery.h"
#include "supervisor/message/exchange.h"
#include "supervisor/message/stand-in.h"
#include "supervisor/pool/slot.h"
#include <assert.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define ACTOR_TABLE_MAX (UINT32_C(1) << 24)

static struct actor_table *table_of(const struct actor *actor)
{
    return &actor->context->actors;
}

/* ---- table ---- */

static int actor_table_grow(struct actor_table *table)
{
    const size_t n = table->n_allocated ? 2 * table->n_allocated : 64;
    struct actor **entries;
    uint32_t *numbers;

    if (n > ACTOR_TABLE_MAX)
        return -ENOMEM;
    entries = realloc(table->entries, n * sizeof(struct actor *));
    if (!entries)
        return -ENOMEM;
    table->entries = entries;
    numbers = realloc(table->generations, n * sizeof(*numbers));
    if (!numbers)
        return -ENOMEM;
    table->generations = numbers;
    numbers = realloc(table->free, n * sizeof(*numbers));
    if (!numbers)
        return -ENOMEM;
    table->free = numbers;
    table->n_allocated = n;
    return 0;
}

static int actor_table_add(struct actor_table *table, struct actor *actor)
{
    uint32_t index;
    int r;

    if (table->n_free == 0 && table->n_entries == table->n_allocated) {
        r = actor_table_grow(table);
        if (r < 0)
            return r;
    }
    if (table->n_free > 0) {
        index = table->free[--table->n_free];
    } else {
        index = (uint32_t)table->n_entries++;
        table->generations[index] = 0;
    }
    /* Never 0: that generation and the first index would be nobody. */
    if (++table->generations[index] == 0)
        table->generations[index] = 1;
    table->entries[index] = actor;
    actor->reference = (uint64_t)table->generations[index] << 32 | index;
    return 0;
}

void actor_table_deinit(struct actor_table *table)
{
    assert(table->n_free == table->n_entries && !table->names);
    free(table->entries);
    free(table->generations);
    free(table->free);
    *table = (struct actor_table)ACTOR_TABLE_NULL;
}

struct actor *actor_get(const struct actor_table *table, uint64_t reference)
{
    const uint32_t index = (uint32_t)reference;
    struct actor *actor = index < table->n_entries ? table->entries[index] : NULL;

    return actor && actor->reference == reference ? actor : NULL;
}

struct actor *actor_next(const struct actor_table *table, size_t *cursor)
{
    while (*cursor < table->n_entries) {
        struct actor *actor = table->entries[(*cursor)++];
        if (actor)
            return actor;
    }
    return NULL;
}

uint64_t actor_next_id(struct context *context)
{
    return ++context->actors.last_id;
}

usec_t actor_realtime(struct context *context)
{
    struct actor_table *table = &context->actors;
    const usec_t now = loop_now(context->loop);

    if (table->turn != now || table->realtime == 0) {
        table->turn = now;
        table->realtime = clock_realtime();
    }
    return table->realtime;
}

/* ---- life ---- */

int actor_new(struct actor **ret, struct context *context, enum actor_kind kind, const char *name)
{
    struct actor *actor = calloc(1, sizeof(*actor));
    struct list *lists[] = {&actor->blobs,      &actor->pool_link,    &actor->observers,
                            &actor->monitoring, &actor->asks,         &actor->names,
                            &actor->schedules,  &actor->blocked,      &actor->blocked_link,
                            &actor->stand_ins,  &actor->stand_in_link};
    int r = -ENOMEM;

    if (!actor)
        return r;
    for (size_t i = 0; i < ELEMENTS(lists); i++)
        list_init(lists[i]);
    actor->context = context;
    actor->kind = kind;
    mailbox_init(&actor->mailbox);
    least_loaded_init(&actor->pool);
    loop_deferred_init(&actor->feed, delivery_on_turn);
    actor->name = strdup(name);
    if (actor->name)
        r = actor_table_add(&context->actors, actor);
    if (r < 0) {
        free(actor->name);
        free(actor);
        return r;
    }
    exchange_subscriber_init(&actor->subscriptions, actor->reference);
    *ret = actor;
    return 0;
}

struct actor *actor_free(struct actor *actor)
{
    struct actor_table *table = table_of(actor);
    const uint32_t index = (uint32_t)actor->reference;

    assert(actor->n_asks == 0 && mailbox_idle(&actor->mailbox) && list_empty(&actor->names));
    loop_undefer(&actor->feed);
    mailbox_deinit(&actor->mailbox);
    index_deinit(&actor->asks_by_cookie);
    index_deinit(&actor->monitoring_by_reference);
    index_deinit(&actor->schedules_by_type);
    index_deinit(&actor->schedules_by_setter);
    list_unlink(&actor->pool_link);
    stand_in_forget_place(actor);
    stand_in_set(actor, NULL);
    table->entries[index] = NULL;
    table->free[table->n_free++] = index;
    free(actor->name);
    free(actor);
    return NULL;
}

struct actor *actor_self(struct actor *actor)
{
    return actor->identity ? actor->identity : actor;
}

/* ---- names ---- */

bool actor_name_valid(const char *name, size_t size)
{
    if (size == 0 || size > PROTOCOL_ACTOR_NAME_MAX || !strchr(ACTOR_NAME_FIRST, name[0]))
        return false;
    for (size_t i = 0; i < size; i++)
        if (name[i] == '\0' || !strchr(ACTOR_NAME_FIRST "._:-", name[i]))
            return false;
    return name[0] != '\0';
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(((const struct actor_name *)a)->name, ((const struct actor_name *)b)->name);
}

static struct actor_name *actor_find_name(const struct actor_table *table, const char *name)
{
    const struct actor_name wanted = {.name = (char *)(uintptr_t)name};
    void *node = tfind(&wanted, &table->names, name_compare);

    return node ? *(struct actor_name **)node : NULL;
}

struct actor *actor_by_name(const struct actor_table *table, const char *name)
{
    struct actor_name *found = actor_find_name(table, name);

    return found ? found->actor : NULL;
}

static int actor_add_name(struct actor *actor, const char *name)
{
    struct actor_name *entry = calloc(1, sizeof(*entry));

    if (!entry)
        return -ENOMEM;
    entry->actor = actor;
    entry->name = strdup(name);
    if (!entry->name || !tsearch(entry, &table_of(actor)->names, name_compare)) {
        free(entry->name);
        free(entry);
        return -ENOMEM;
    }
    list_push_back(&actor->names, &entry->link);
    actor->n_names++;
    return 0;
}

int actor_publish(struct actor *actor)
{
    return actor_add_name(actor, actor->name);
}

int actor_register(struct actor *actor, const char *name)
{
    struct actor *owner;

    if (!actor_name_valid(name, strlen(name)))
        return ACTOR_E_BAD_NAME;
    owner = actor_by_name(table_of(actor), name);
    if (owner == actor)
        return 0;
    if (owner || registry_find(&actor->context->registry, name))
        return ACTOR_E_EXISTS;
    if (actor->n_names >= ACTOR_NAMES_MAX)
        return ACTOR_E_TOO_MANY;
    return actor_add_name(actor, name);
}

bool actor_deregister(struct actor *actor, const char *name)
{
    struct actor_name *entry = actor_find_name(table_of(actor), name);

    if (!entry || entry->actor != actor)
        return false;
    (void)tdelete(entry, &table_of(actor)->names, name_compare);
    list_unlink(&entry->link);
    actor->n_names--;
    free(entry->name);
    free(entry);
    return true;
}

/* ---- what they are ---- */

const char *actor_kind_to_string(enum actor_kind kind)
{
    static const char *const KINDS[] = {
        [ACTOR_SLOT] = "slot",         [ACTOR_POOL] = "pool",     [ACTOR_GROUP] = "group",
        [ACTOR_EXCHANGE] = "exchange", [ACTOR_CLIENT] = "client",
    };

    _Static_assert(ELEMENTS(KINDS) == _ACTOR_N_KINDS, "a new kind needs a name");
    return KINDS[kind];
}

const char *actor_name_of(const struct actor_table *table, uint64_t reference)
{
    const struct actor *actor = actor_get(table, reference);

    if (actor)
        return actor->name;
    return reference == 0 ? "" : "(gone)";
}

struct actor_policy actor_policy(const struct actor *actor)
{
    const struct config_group *config = NULL;

    if (actor->kind == ACTOR_SLOT)
        config = actor->slot->pool->config;
    else if (actor->kind == ACTOR_POOL)
        config = actor->cell->config;
    else if (actor->kind == ACTOR_GROUP)
        config = actor->group->config;
    if (!config)
        return (struct actor_policy){.mailbox_max = 10000,
                                     .mailbox_memory_max = UINT64_C(64) << 20};
    return (struct actor_policy){
        .mailbox_max = config->mailbox_max,
        .mailbox_memory_max = config->mailbox_memory_max,
        .overflow = config->overflow,
        .on_crash = config->on_crash,
        .message_retries = config->message_retries,
    };
}

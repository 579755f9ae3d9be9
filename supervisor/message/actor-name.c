/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-name.h"

#include "shared/base/hash.h"
#include "shared/base/log.h"
#include "shared/protocol/protocol-requests.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool actor_name_valid(const char *name, size_t size)
{
    if (size == 0 || size > PROTOCOL_ACTOR_NAME_MAX || !strchr(ACTOR_NAME_FIRST, name[0]))
        return false;
    for (size_t i = 0; i < size; i++)
        if (name[i] == '\0' || !strchr(ACTOR_NAME_FIRST "._:-", name[i]))
            return false;
    return name[0] != '\0';
}

static struct actor_name *find(const struct message_context *context, const char *name)
{
    const uint64_t hash = hash_bytes(name, strlen(name));

    index_for_each_entry (found, &context->names, hash, struct actor_name, by_name)
        if (strcmp(found->name, name) == 0)
            return found;
    return NULL;
}

struct actor *actor_by_name(const struct message_context *context, const char *name)
{
    struct actor_name *found = find(context, name);

    return found ? found->actor : NULL;
}

static bool find_in_groups(const struct message_context *context, const char *address,
                           struct actor **ret)
{
    *ret = NULL;
    return context->find_in_groups && context->find_in_groups(context->groups, address, ret);
}

struct actor *actor_by_address(const struct message_context *context, const char *address)
{
    struct actor *actor;

    return find_in_groups(context, address, &actor) ? actor : actor_by_name(context, address);
}

static int add(struct actor *actor, const char *name)
{
    const size_t size = strlen(name);
    struct actor_name *entry = calloc(1, sizeof(*entry) + size + 1);

    if (!entry)
        return -ENOMEM;
    entry->actor = actor;
    memcpy(entry->name, name, size + 1);
    list_init(&entry->link);
    list_push_back(&actor->names, &entry->link);
    index_add(&actor->context->names, &entry->by_name, hash_bytes(name, size));
    actor->n_names++;
    return 0;
}

int actor_publish(struct actor *actor)
{
    return add(actor, actor->name);
}

int actor_register(struct actor *actor, const char *name)
{
    struct actor *owner, *found;

    if (!actor_name_valid(name, strlen(name)))
        return ACTOR_E_BAD_NAME;
    owner = actor_by_name(actor->context, name);
    if (owner == actor)
        return 0;
    if (owner || find_in_groups(actor->context, name, &found))
        return ACTOR_E_EXISTS;
    if (actor->n_names >= ACTOR_NAMES_MAX)
        return ACTOR_E_TOO_MANY;
    return add(actor, name);
}

static void forget(struct actor_name *entry)
{
    struct actor *actor = entry->actor;

    index_remove(&actor->context->names, &entry->by_name);
    list_unlink(&entry->link);
    actor->n_names--;
    free(entry);
}

bool actor_deregister(struct actor *actor, const char *name)
{
    struct actor_name *entry = find(actor->context, name);

    if (!entry || entry->actor != actor)
        return false;
    forget(entry);
    return true;
}

void actor_deregister_all(struct actor *actor)
{
    list_until_empty (name, &actor->names, struct actor_name, link)
        forget(name);
}

/* ---- across an upgrade ---- */

struct name_row {
    uint64_t actor;
    const char *name;
};

#define ROW name_row
#define NAME_FIELDS(F)                                                                             \
    F(UPGRADE, actor, NUMBER(actor))                                                               \
    F(UPGRADE, name, WORD(name))
const struct record ACTOR_NAME_RECORD = RECORD("name", NAME_FIELDS);

/* Without the own names of clients and exchanges, which have them from the start. */
void actor_names_save(const struct actor *actor, struct saver *saver)
{
    list_for_each_entry (name, &actor->names, struct actor_name, link) {
        const struct name_row row = {actor->reference, name->name};

        if (strcmp(row.name, actor->name) != 0)
            record_save(saver, &ACTOR_NAME_RECORD, &row, NULL);
    }
}

int actor_name_restore_row(struct message_context *context, struct saved_reader *reader)
{
    struct name_row row = {0};
    struct actor *actor;
    int r;

    record_get(reader, &ACTOR_NAME_RECORD, &row);
    if (reader->damaged || !row.name)
        return -EBADMSG;
    actor = actor_get(context, row.actor);
    if (!actor)
        return 0; /* its names have ended with it */
    r = actor_register(actor, row.name);
    if (r == ACTOR_E_EXISTS) {
        log_warning("%s loses the name %s, which it had registered: a file declares it",
                    actor->name, row.name);
        return 0;
    }
    return r > 0 ? -EBADMSG : r;
}

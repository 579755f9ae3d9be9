/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-name-save.h"

#include "shared/base/log.h"
#include "shared/protocol/protocol-requests.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include <errno.h>
#include <string.h>

/* Without the own names of clients and exchanges, which have them from the start. */
static int save_names(const struct actor *actor, struct saver *saver)
{
    int r = 0;

    list_for_each (node, &actor->names) {
        const char *name = list_entry(node, struct actor_name, link)->name;
        struct saved_writer row = {0};

        if (strcmp(name, actor->name) == 0)
            continue;
        saved_put_number(&row, actor->reference);
        saved_put_text(&row, name);
        r = saved_add(saver, ACTOR_NAME_ROW, &row, NULL);
        if (r < 0)
            break;
    }
    return r;
}

int actor_names_save(const struct message_context *context, struct saver *saver)
{
    const struct actor *actor;
    size_t cursor = 0;
    int r = 0;

    while (r == 0 && (actor = actor_next(&context->actors, &cursor)))
        r = save_names(actor, saver);
    return r;
}

int actor_name_restore_row(struct message_context *context, struct saved_reader *row)
{
    struct actor *actor = actor_get(context, saved_get_number(row));
    char name[PROTOCOL_ACTOR_NAME_MAX + 1];
    int r;

    saved_get_text(row, name, sizeof(name));
    if (row->damaged)
        return -EBADMSG;
    if (!actor)
        return 0; /* its names have ended with it */
    r = actor_register(actor, name);
    if (r == ACTOR_E_EXISTS) {
        log_warning("%s loses the name %s, which it had registered: a file declares it",
                    actor->name, name);
        return 0;
    }
    return r > 0 ? -EBADMSG : r;
}

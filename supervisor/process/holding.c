/* SPDX-License-Identifier: MIT */
#include "supervisor/process/holding.h"

#include "supervisor/keeper/message.h"
#include "supervisor/process/spawner.h"
#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct holding_head) + HOLDING_NAME_MAX + 1 + HOLDING_DATA_MAX <=
                   HOLD_BYTES_MAX,
               "bytes of a holding fit a message");
_Static_assert(HOLDING_FDS_MAX <= HOLD_FDS_MAX, "descriptors of a holding fit a message");

/* Too large for the stack. */
static struct message outgoing;

/* Returns the size, or -E2BIG. */
static int put_together(uint8_t *bytes, const struct holding_content *content)
{
    const struct holding_head head = {.kind = (uint16_t)content->kind, .version = content->version};
    const size_t name_size = strlen(content->name) + 1;

    if (name_size > HOLDING_NAME_MAX + 1 || content->size > HOLDING_DATA_MAX)
        return -E2BIG;
    memcpy(bytes, &head, sizeof(head));
    memcpy(bytes + sizeof(head), content->name, name_size);
    if (content->size > 0)
        memcpy(bytes + sizeof(head) + name_size, content->data, content->size);
    return (int)(sizeof(head) + name_size + content->size);
}

int holding_put(struct holding *holding, struct spawner *spawner,
                const struct spawner_client *client, pid_t pid,
                const struct holding_content *content)
{
    uint8_t bytes[HOLD_BYTES_MAX];
    int r = client->id != 0 ? put_together(bytes, content) : -ESRCH;

    if (r < 0)
        return r;
    message_begin(&outgoing, MESSAGE_HOLD, client->id)->pid = pid;
    r = message_put_held(&outgoing, bytes, (size_t)r, content->fds, content->n_fds);
    if (r == 0)
        r = spawner_send(spawner, &outgoing);
    if (r == 0)
        holding->id = client->id;
    return r;
}

int holding_replace_fd(const struct holding *holding, struct spawner *spawner, int fd)
{
    if (holding->id == 0)
        return -ESRCH;
    (void)message_begin(&outgoing, MESSAGE_REPLACE, holding->id);
    message_put_fd(&outgoing, fd);
    return spawner_send(spawner, &outgoing);
}

void holding_drop(struct holding *holding, struct spawner *spawner)
{
    if (holding->id == 0)
        return;
    (void)message_begin(&outgoing, MESSAGE_RELEASE, holding->id);
    (void)spawner_send(spawner, &outgoing);
    holding->id = 0;
}

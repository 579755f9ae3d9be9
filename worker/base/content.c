/* SPDX-License-Identifier: MIT */
#include "worker/base/content.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static size_t inline_size(const struct protocol_content *wire)
{
    return wire->payload.form == PAYLOAD_INLINE ? (size_t)wire->payload.size : 0;
}

size_t content_room(const struct protocol_content *wire)
{
    return inline_size(wire) + 1 + wire->topic.type_size + 1 + wire->topic.key_size + 1;
}

static int map_blob(struct content *content, const struct payload_wire *payload, int control)
{
    int r = payload_receive_blob(control, payload, &content->payload);

    if (r == 0)
        content->size = content->mapped_size = (size_t)payload->size;
    return r;
}

/* Returns the place for the next piece. */
static char *place(char *at, const void *bytes, size_t size)
{
    if (size > 0)
        memcpy(at, bytes, size);
    at[size] = '\0';
    return at + size + 1;
}

int content_place(struct content *ret, const struct protocol_content *wire, void *room, int control)
{
    const struct topic *topic = &wire->topic;
    char *type, *key;

    *ret = (struct content){.payload = room, .size = inline_size(wire)};
    type = place(room, wire->payload.data, ret->size);
    ret->type = type;
    key = place(type, topic->type, topic->type_size);
    if (topic->key) {
        ret->key = key;
        ret->key_size = topic->key_size;
    }
    (void)place(key, topic->key, topic->key ? topic->key_size : 0);
    return wire->payload.form == PAYLOAD_BLOB ? map_blob(ret, &wire->payload, control) : 0;
}

const char *content_problem(int error)
{
    if (error == -ENOMEM)
        return "the payload does not fit into the worker's memory or address space (LimitAS=)";
    if (error == -EMFILE)
        return "the worker has no descriptor left for the payload (LimitNOFILE=)";
    return strerrordesc_np(-error);
}

int content_discard(const struct protocol_content *wire, int control)
{
    int fd, r;

    if (wire->payload.form != PAYLOAD_BLOB)
        return 0;
    r = payload_receive_fd(control, wire->payload.serial, payload_drop_fd, &fd);
    if (r == 0)
        payload_drop_fd(fd);
    return r;
}

void content_deinit(struct content *content)
{
    if (content->mapped_size > 0)
        (void)munmap((void *)(uintptr_t)content->payload, content->mapped_size);
    content->mapped_size = 0;
}

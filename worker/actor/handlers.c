/* SPDX-License-Identifier: MIT */
#include "worker/actor/handlers.h"

#include "shared/protocol/topic.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* `type` has no NUL; handlers' types end with one. */
static int compare(const struct handler *handler, const char *type, size_t length)
{
    int order = strncmp(handler->type, type, length);

    return order != 0 ? order : handler->length > length;
}

/* Returns the index of the type, or the place to insert it. */
static size_t position(const struct handlers *handlers, const char *type, size_t length,
                       bool *ret_found)
{
    size_t from = 0, to = handlers->count;

    *ret_found = false;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = compare(&handlers->entries[middle], type, length);

        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static void remove_at(struct handlers *handlers, size_t at)
{
    free(handlers->entries[at].type);
    handlers->count--;
    memmove(handlers->entries + at, handlers->entries + at + 1,
            (handlers->count - at) * sizeof(*handlers->entries));
}

static int insert(struct handlers *handlers, size_t at, const char *type, size_t length)
{
    char *copy;

    if (handlers->count == handlers->room) {
        size_t room = handlers->room == 0 ? 8 : handlers->room * 2;
        struct handler *entries = reallocarray(handlers->entries, room, sizeof(*entries));

        if (!entries)
            return -ENOMEM;
        handlers->entries = entries;
        handlers->room = room;
    }
    copy = strdup(type);
    if (!copy)
        return -ENOMEM;
    memmove(handlers->entries + at + 1, handlers->entries + at,
            (handlers->count - at) * sizeof(*handlers->entries));
    handlers->entries[at] = (struct handler){.type = copy, .length = length};
    handlers->count++;
    return 0;
}

int handlers_set(struct handlers *handlers, const char *type, troupe_message_fn fn, void *userdata)
{
    size_t at, length;
    bool found;
    int r = 0;

    length = strnlen(type, TOPIC_TYPE_MAX + 1);
    if (!topic_type_valid(type, length))
        return -EINVAL;
    at = position(handlers, type, length, &found);
    if (!fn) {
        if (found)
            remove_at(handlers, at);
        return 0;
    }
    if (!found)
        r = insert(handlers, at, type, length);
    if (r < 0)
        return r;
    handlers->entries[at].fn = fn;
    handlers->entries[at].userdata = userdata;
    return 0;
}

const struct handler *handlers_find(const struct handlers *handlers, const char *type)
{
    uint32_t length = (uint32_t)strlen(type);

    do {
        bool found;
        size_t at = position(handlers, type, length, &found);

        if (found)
            return &handlers->entries[at];
    } while (topic_type_parent(type, &length));
    return NULL;
}

void handlers_deinit(struct handlers *handlers)
{
    for (size_t i = 0; i < handlers->count; i++)
        free(handlers->entries[i].type);
    free(handlers->entries);
    *handlers = (struct handlers){0};
}

/* SPDX-License-Identifier: MIT */
#include "worker/actor/handlers.h"

#include "shared/protocol/topic.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct handler *find_exact(const struct handlers *handlers, const char *type)
{
    for (size_t i = 0; i < handlers->count; i++)
        if (strcmp(handlers->entries[i].type, type) == 0)
            return &handlers->entries[i];
    return NULL;
}

static int add(struct handlers *handlers, const char *type, size_t length, struct handler **ret)
{
    struct handler *entries =
        reallocarray(handlers->entries, handlers->count + 1, sizeof(*entries));
    char *copy = entries ? strdup(type) : NULL;

    if (entries)
        handlers->entries = entries;
    if (!copy)
        return -ENOMEM;
    *ret = &entries[handlers->count++];
    **ret = (struct handler){.type = copy, .length = length};
    return 0;
}

int handlers_set(struct handlers *handlers, const char *type, troupe_message_fn fn, void *userdata)
{
    const size_t length = strnlen(type, TOPIC_TYPE_MAX + 1);
    struct handler *handler;
    int r;

    if (!topic_type_valid(type, length))
        return -EINVAL;
    handler = find_exact(handlers, type);
    if (!fn && handler) {
        free(handler->type);
        *handler = handlers->entries[--handlers->count];
    }
    if (!fn)
        return 0;
    r = handler ? 0 : add(handlers, type, length, &handler);
    if (r < 0)
        return r;
    handler->fn = fn;
    handler->userdata = userdata;
    return 0;
}

static bool is_for(const struct handler *handler, const char *type, size_t length)
{
    return handler->length == 0 ||
           (handler->length <= length && memcmp(handler->type, type, handler->length) == 0 &&
            (type[handler->length] == '\0' || type[handler->length] == '.'));
}

const struct handler *handlers_find(const struct handlers *handlers, const char *type)
{
    const size_t length = strlen(type);
    const struct handler *nearest = NULL;

    for (size_t i = 0; i < handlers->count; i++) {
        const struct handler *handler = &handlers->entries[i];

        if (is_for(handler, type, length) && (!nearest || handler->length > nearest->length))
            nearest = handler;
    }
    return nearest;
}

void handlers_deinit(struct handlers *handlers)
{
    for (size_t i = 0; i < handlers->count; i++)
        free(handlers->entries[i].type);
    free(handlers->entries);
    *handlers = (struct handlers){0};
}

/* SPDX-License-Identifier: MIT */
#include "worker/actor/future.h"

#include "shared/base/cleanup.h"
#include "worker/actor/local-actor.h"
#include "worker/public.h"
#include <string.h>

static const _Alignas(8) char nothing[8];
#define NOTHING ((struct content){.type = nothing, .payload = nothing})

void futures_init(struct futures *futures)
{
    *futures = (struct futures){0};
    list_init(&futures->asks);
    list_init(&futures->monitors);
}

static void delete_all(struct futures *futures, struct list *list)
{
    list_for_each_entry_safe (future, list, struct troupe_future, link)
        future_delete(futures, future);
}

void futures_deinit(struct futures *futures)
{
    delete_all(futures, &futures->asks);
    delete_all(futures, &futures->monitors);
    handle_table_deinit(&futures->table);
}

int future_new(struct troupe_future **ret, struct troupe_actor *actor, struct futures *futures,
               enum future_kind kind)
{
    struct troupe_future *future = malloc(sizeof(*future));
    uint64_t number;
    int r;

    if (!future)
        return -ENOMEM;
    *future = (struct troupe_future){
        .actor = actor, .kind = kind, .sent = actor->carrier->position, .reason = ""};
    future->content = NOTHING;
    r = handle_table_add(&futures->table, future, &number);
    if (r < 0) {
        free(future);
        return r;
    }
    future->cookie = number | FUTURE_COOKIE;
    list_init(&future->then_link);
    list_push_back(kind == FUTURE_MONITOR ? &futures->monitors : &futures->asks, &future->link);
    *ret = future;
    return 0;
}

struct troupe_future *future_find(const struct futures *futures, uint64_t cookie)
{
    if (!(cookie & FUTURE_COOKIE))
        return NULL;
    return handle_table_get(&futures->table, cookie & ~FUTURE_COOKIE);
}

static void future_forget(struct futures *futures, struct troupe_future *future)
{
    handle_table_remove(&futures->table, future->cookie & ~FUTURE_COOKIE);
    future->cookie = 0;
}

void future_delete(struct futures *futures, struct troupe_future *future)
{
    future_forget(futures, future);
    list_unlink(&future->link);
    list_unlink(&future->then_link);
    content_deinit(&future->content);
    free(future->bytes);
    free(future);
}

static void end(struct futures *futures, struct troupe_future *future, int error)
{
    future_forget(futures, future);
    future->state = FUTURE_ENDED;
    future->error = error;
}

static void drop_content(struct troupe_future *future)
{
    free(future->bytes);
    future->bytes = NULL;
    future->content = NOTHING;
}

static int keep_content(struct troupe_future *future, const struct protocol_content *content,
                        int control)
{
    drop_content(future);
    future->bytes = malloc(content_room(content));
    if (!future->bytes) {
        int r = content_discard(content, control);

        return r < 0 ? r : -ENOMEM;
    }
    return content_place(&future->content, content, future->bytes, control);
}

int future_set_default(struct troupe_future *future, const struct protocol_content *content)
{
    future->has_default = true;
    return keep_content(future, content, -1);
}

void future_reply(struct futures *futures, struct troupe_future *future, troupe_ref from,
                  const struct protocol_content *content, int control)
{
    int r = keep_content(future, content, control);

    if (r < 0) {
        drop_content(future);
        future->reason = "the reply could not be received";
    }
    future->from = from;
    end(futures, future, r);
}

void future_fail(struct futures *futures, struct troupe_future *future, int error,
                 const void *reason, uint32_t reason_size)
{
    if (error == -ETIMEDOUT && future->has_default) {
        future->is_default = true;
        end(futures, future, 0);
        return;
    }
    drop_content(future);
    if (reason_size > 0)
        future->bytes = strndup(reason, reason_size);
    if (future->bytes)
        future->reason = future->bytes;
    end(futures, future, error);
}

void future_value(struct futures *futures, struct troupe_future *future, uint64_t value)
{
    future->value = value;
    end(futures, future, 0);
}

_public_ bool troupe_future_done(const struct troupe_future *future)
{
    return future->state == FUTURE_ENDED;
}

_public_ int troupe_future_error(struct troupe_future *future)
{
    if (future->state != FUTURE_ENDED)
        return -EAGAIN;
    future->looked_at = true;
    return future->error;
}

_public_ const char *troupe_future_type(const struct troupe_future *future)
{
    return future->content.type;
}

_public_ const void *troupe_future_payload(const struct troupe_future *future, size_t *ret_size)
{
    *ret_size = future->content.size;
    return future->content.payload;
}

_public_ const char *troupe_future_reason(const struct troupe_future *future)
{
    return future->reason;
}

_public_ troupe_ref troupe_future_from(const struct troupe_future *future)
{
    return future->from;
}

_public_ bool troupe_future_is_default(const struct troupe_future *future)
{
    return future->is_default;
}

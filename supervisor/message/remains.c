/* SPDX-License-Identifier: MIT */
#include "supervisor/message/remains.h"

#include "supervisor/message/message-context.h"

static void on_turn(struct loop_deferred *deferred)
{
    struct message_context *context = list_entry(deferred, struct message_context, free_remains);
    size_t left = REMAINS_FREED_PER_TURN;

    list_until_empty (remains, &context->remains, struct remains, link) {
        if (left == 0) {
            loop_defer(context->loop, deferred);
            return;
        }
        left -= remains->free_some(context, remains, left);
    }
}

void remains_init(struct message_context *context)
{
    list_init(&context->remains);
    loop_deferred_init(&context->free_remains, on_turn);
}

void remains_add(struct message_context *context, struct remains *remains)
{
    list_init(&remains->link);
    list_push_back(&context->remains, &remains->link);
    loop_defer(context->loop, &context->free_remains);
}

void remains_settle(struct message_context *context)
{
    while (!list_empty(&context->remains))
        on_turn(&context->free_remains);
    loop_undefer(&context->free_remains);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/message/message-context.h"
#include "supervisor/message/actor-end.h"

#include "supervisor/message/actor.h"

void message_context_init(struct message_context *context)
{
    *context = (struct message_context){0};
    context->last_client = &context->own_last_client;
    list_init(&context->routed);
    remains_init(context);
    waiting_room_init(&context->inherited);
    ask_table_init(&context->asks);
    schedule_table_init(&context->schedules);
    shares_init(&context->exchange_shares);
    dead_letters_init(&context->dead_letters, 0, 0);
}

void message_context_deinit(struct message_context *context)
{
    actor_each (actor, &context->actors)
        actor_end(actor, "the supervisor is stopping");
    remains_settle(context);
    schedule_table_deinit(&context->schedules);
    shares_deinit(&context->exchange_shares);
    index_deinit(&context->names);
    waiting_room_deinit(&context->inherited);
    handle_table_deinit(&context->actors);
    index_deinit(&context->references);
    ask_table_deinit(&context->asks);
    dead_letters_deinit(&context->dead_letters);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/message/message-log.h"

#include "shared/base/log.h"
#include "supervisor/message/message-context.h"
#include <stdio.h>

void message_log(const struct actor *actor, enum actor_log what,
                 const struct protocol_message *message, const char *text)
{
    const char *word = what == ACTOR_LOG_ENQUEUED     ? "enqueued"
                       : what == ACTOR_LOG_DISPATCHED ? "dispatched"
                                                      : "not handled";
    const char *sender = actor_name_of(&actor->context->actors, message->sender);
    const struct topic *topic = &message->content.topic;
    char type[TOPIC_TYPE_MAX + 1], id[24];

    if (!(actor->log & what))
        return;
    (void)snprintf(type, sizeof(type), "%.*s", (int)topic->type_size, topic->type);
    (void)snprintf(id, sizeof(id), "%llu", (unsigned long long)message->id);
    log_write(what == ACTOR_LOG_UNHANDLED ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG,
              LOG_FIELDS({"TROUPE_ACTOR", actor->name}, {"TROUPE_SENDER", sender},
                         {"TROUPE_MESSAGE", id}, {"TROUPE_TYPE", type}),
              "message %s for %s %s: type '%s' from %s%s%s", id, actor->name, word, type,
              sender[0] ? sender : "nobody", text ? ": " : "", text ? text : "");
}

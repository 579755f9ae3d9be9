/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-log.h"

#include "supervisor/event/limited-log.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 2048

/* Returns the group of a slot or pool, from its name; NULL for clients and exchanges. */
static const char *group_of(const struct actor *actor, char group[CONFIG_GROUP_NAME_MAX + 1])
{
    if (actor_is(actor, ACTOR_CLIENT) || actor_exchange(actor))
        return NULL;
    (void)snprintf(group, CONFIG_GROUP_NAME_MAX + 1, "%.*s", (int)strcspn(actor->name, "/"),
                   actor->name);
    return group;
}

void actor_log(const struct actor *actor, enum log_level level, const char *format, ...)
{
    char group[CONFIG_GROUP_NAME_MAX + 1], text[TEXT_MAX];
    struct limited_line line = {
        .level = level,
        .subject = group_of(actor, group),
        .kind = "actor",
        .text = text,
    };
    int n = snprintf(text, sizeof(text), "%.512s: ", actor->name);
    va_list arguments;

    line.id = limited_log_id(format, actor_exchange(actor) ? actor->name : NULL);
    va_start(arguments, format);
    (void)vsnprintf(text + n, sizeof(text) - (size_t)n, format, arguments);
    va_end(arguments);
    if (limited_log_admits(actor->context->log, &line))
        log_write(level, LOG_FIELDS({"TROUPE_GROUP", line.subject}, {"TROUPE_ACTOR", actor->name}),
                  "%s", text);
}

void actor_log_message(const struct actor *actor, enum actor_log what,
                       const struct protocol_message *message, const char *text)
{
    const char *word = what == ACTOR_LOG_ENQUEUED     ? "enqueued"
                       : what == ACTOR_LOG_DISPATCHED ? "dispatched"
                                                      : "not handled";
    const char *sender = actor_name_of(actor->context, message->sender);
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

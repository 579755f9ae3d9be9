/* SPDX-License-Identifier: MIT */
#include "supervisor/message/actor-log.h"

#include "supervisor/event/limited-log.h"
#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 2048

/* The names of slots and pools begin with their group's. Clients and exchanges have none. */
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

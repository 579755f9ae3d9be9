/* SPDX-License-Identifier: MIT */
#include "supervisor/event/complaint.h"

#include "shared/base/index.h"
#include "supervisor/context.h"
#include "supervisor/event/log-limit.h"
#include "supervisor/group/cell.h"
#include "supervisor/group/group.h"
#include "supervisor/message/actor.h"
#include "supervisor/pool/slot.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 2048

/* NULL = it belongs to none. */
static const char *group_of(const struct actor *actor)
{
    switch (actor->kind) {
    case ACTOR_SLOT:
        return actor->slot ? actor->slot->cell->group->name : NULL;
    case ACTOR_POOL:
        return actor->cell ? actor->cell->group->name : NULL;
    case ACTOR_GROUP:
        return actor->group ? actor->group->name : NULL;
    default:
        return NULL;
    }
}

/* The number of a complaint with this format, about `name` (NULL = one of many). */
static uint64_t id_of(const char *format, const char *name)
{
    const uint64_t parts[] = {(uint64_t)(uintptr_t)format,
                              name ? index_key(name, strlen(name)) : 0};

    return index_key(parts, sizeof(parts));
}

static void write_line(struct context *context, struct log_line *line, const char *actor)
{
    line->kind = "complaint";
    if (log_limit_admits(&context->log_limits, line))
        log_write(line->level, LOG_FIELDS({"TROUPE_GROUP", line->subject}, {"TROUPE_ACTOR", actor}),
                  "%s", line->text);
}

void complain(const struct actor *actor, enum log_level level, const char *format, ...)
{
    const char *name = actor->kind == ACTOR_CLIENT ? NULL : actor->name;
    char text[TEXT_MAX];
    struct log_line line = {.level = level, .subject = group_of(actor), .text = text};
    int n = snprintf(text, sizeof(text), "%.512s: ", actor->name);
    va_list arguments;

    line.id = id_of(format, line.subject ? NULL : name);
    va_start(arguments, format);
    (void)vsnprintf(text + n, sizeof(text) - (size_t)n, format, arguments);
    va_end(arguments);
    write_line(actor->context, &line, actor->name);
}

void complain_outside(struct context *context, enum log_level level, const char *format, ...)
{
    char text[TEXT_MAX];
    struct log_line line = {.level = level, .id = id_of(format, NULL), .text = text};
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    write_line(context, &line, NULL);
}

void complain_of_group(struct context *context, const char *group, enum log_level level,
                       const char *format, ...)
{
    char text[TEXT_MAX];
    struct log_line line = {
        .level = level, .subject = group, .id = id_of(format, NULL), .text = text};
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    write_line(context, &line, NULL);
}

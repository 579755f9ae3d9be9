/* SPDX-License-Identifier: MIT */
#include "complaint.h"

#include "actor.h"
#include "context.h"
#include <stdarg.h>
#include <stdio.h>

#define TEXT_MAX 2048

static void tell_left_out(const char *whose, unsigned n)
{
    if (n > 0)
        log_warning("%s: %u more lines like the last ones are left out", whose, n);
}

void complain(struct actor *actor, enum log_level level, const char *format, ...)
{
    unsigned left_out;
    char text[TEXT_MAX];
    va_list arguments;

    if (!rate_take(&actor->complaints, loop_now(actor->context->loop), COMPLAINTS_PER_ACTOR,
                   &left_out))
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    tell_left_out(actor->name, left_out);
    log_write(level, LOG_FIELDS({"TROUPE_ACTOR", actor->name}), "%s: %s", actor->name, text);
}

void complain_outside(struct context *context, enum log_level level, const char *format, ...)
{
    unsigned left_out;
    char text[TEXT_MAX];
    va_list arguments;

    if (!rate_take(&context->complaints, loop_now(context->loop), COMPLAINTS_OUTSIDE, &left_out))
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    tell_left_out("clients", left_out);
    log_write(level, LOG_NO_FIELDS, "%s", text);
}

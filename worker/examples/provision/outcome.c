/* SPDX-License-Identifier: MIT */
#include "worker/examples/provision/outcome.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_MAX 512
#define TIME_MAX 40

void outcome_init(struct outcome *outcome)
{
    *outcome = (struct outcome){.messages = json_array()};
}

void outcome_deinit(struct outcome *outcome)
{
    json_decref(outcome->messages);
    outcome->messages = NULL;
}

/* Formats the time according to RFC 3339, with microseconds. */
static void format_now(char *text, size_t size)
{
    struct timespec now;
    struct tm date;
    size_t n;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &date);
    n = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &date);
    (void)snprintf(text + n, size - n, ".%06ldZ", now.tv_nsec / 1000);
}

__attribute__((format(printf, 2, 0))) static void add(struct outcome *outcome, const char *format,
                                                      va_list arguments)
{
    char text[TEXT_MAX], at[TIME_MAX];

    format_now(at, sizeof(at));
    (void)vsnprintf(text, sizeof(text), format, arguments);
    /* A text of another process may be cut within a character; it is then omitted. */
    if (json_array_append_new(outcome->messages, json_pack("{s:s, s:s}", "at", at, "text", text)) <
        0)
        (void)json_array_append_new(outcome->messages,
                                    json_pack("{s:s, s:s}", "at", at, "text", "(unreadable)"));
}

void outcome_say(struct outcome *outcome, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add(outcome, format, arguments);
    va_end(arguments);
}

void outcome_fail(struct outcome *outcome, enum provision_code code, const char *format, ...)
{
    va_list arguments;

    if (outcome->code == PROVISION_DONE)
        outcome->code = code;
    va_start(arguments, format);
    add(outcome, format, arguments);
    va_end(arguments);
}

int outcome_end(const struct outcome *outcome, const struct order *order, struct troupe_job *job)
{
    /* An order that was not understood has no properties. */
    json_t *object = json_pack("{s:i, s:O*, s:O}", "code", (int)outcome->code, "properties",
                               order->properties, "messages", outcome->messages);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    int r = -ENOMEM;

    if (text && outcome->code == PROVISION_DONE)
        r = troupe_job_succeed(job, text, strlen(text));
    else if (text)
        r = troupe_job_reject(job, (int)outcome->code, text, strlen(text));
    free(text);
    json_decref(object);
    return r;
}

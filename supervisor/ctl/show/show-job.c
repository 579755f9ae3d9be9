/* SPDX-License-Identifier: MIT */

/* Shows jobs and events. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <string.h>

/* "by uid 0 after 12ms" or "after 12ms: the supervisor is stopping". */
#define CANCELLED                                                                                  \
    "[{reason/cancelled } after {ended_at-created_at:span}"                                        \
    "|after {ended_at-created_at:span}[{reason=cancelled}|: {reason}]]"
/* The details of other states: until when, where, why. */
#define DETAILS                                                                                    \
    "[{state=backoff}, next attempt in {next_attempt_at:in}"                                       \
    "|{state=delayed}, in {next_attempt_at:in}"                                                    \
    "|{state=pending}[, waits for {waits_for} of {after:count} jobs][, {members.live:count} "      \
    "members]"                                                                                     \
    "|{state=running}, on {worker}[ for {started_at:age}]]"                                        \
    "[{cancel_requested}, cancellation requested][{code=0}|, code {code}][, {reason:line}]"
#define STATE                                                                                      \
    "{state:dot} " BOLD "{id}" PLAIN ": {state:state}[{state=cancelled} " CANCELLED "|" DETAILS "]"
#define LETTER                                                                                     \
    "dead letter {dead_letter}: 'troupectl dead-letters show {dead_letter}', 'troupectl retry "    \
    "{dead_letter}'"

void show_job_state(const struct terminal *terminal, const json_t *job, usec_t now)
{
    _cleanup_free_ char *state = pattern_text(STATE, job, now);

    terminal_print(terminal, "%s  %s", TIME_OF_DAY(now), state ? state : "");
}

static void show_attempts(const struct terminal *terminal, const json_t *attempts, usec_t now)
{
    static const struct list_column columns[] = {
        {NULL, "{number}", LIST_LEFT},
        {NULL, "{worker}", LIST_LEFT},
        {NULL, "{at:ago}", LIST_LEFT},
        {NULL, "{cause}: {detail:line}[, in {top}]", LIST_LEFT},
        {0},
    };

    if (json_array_size(attempts) == 0)
        return;
    terminal_print(terminal, "  Attempts that failed:");
    list_print(terminal, "            ", columns, attempts, now);
}

static void show_parents(const struct terminal *terminal, const json_t *parents, usec_t now)
{
    static const struct list_column columns[] = {
        {NULL, "{id}", LIST_LEFT},
        {NULL, "{state:state}", LIST_LEFT},
        {NULL, "for {condition}", LIST_LEFT},
        {0},
    };

    if (json_array_size(parents) == 0)
        return;
    terminal_print(terminal, "  Waits for:");
    list_print(terminal, "            ", columns, parents, now);
}

static const char FACTS[] =
    "     Group: {group}[{moved}, after it ran out of memory in another]\n"
    "   Attempt: {attempt}[, last on {worker}]\n"
    "    Failed: {failed_attempts} of {max_attempts} allowed attempts\n"
    "   Created: {created_at:time} ({created_at:ago})\n"
    "[   Started: {started_at:time} ({started_at:ago})]\n"
    "[     Ended: {ended_at:time} ({ended_at:ago})]\n"
    "[      Took: {ended_at-created_at:span}[, {ended_at-started_at:span} of it at work"
    "[{attempt>1} in the last attempt]|{attempt=0}, none of it at work]]\n"
    "[       Key: {key}]\n"
    "[     Batch: {batch}]\n"
    "[   Members: {members.live:count} live[{members.open}, open], {members.succeeded:count} "
    "succeeded[, {members.failed>0:count} failed]]\n"
    "[  Children: {children:count} wait for it]\n"
    "  Priority: {priority:count}\n"
    "[      Cost: {cost:count} units of each limit]\n"
    "[      Tags: {tags}]\n"
    "[     Trace: {traceparent}]\n"
    "[    Source: {from_history}from the history]";

/* The payload's beginning is at most 60 bytes. */
static const char START[] =
    "[   Payload: {payload_bytes:bytes}[{payload_start.encoding=utf8}: {payload_start.data:full}"
    "[{payload_bytes>60} …]|, not text]]";

void show_job(const struct terminal *terminal, const json_t *job, usec_t now)
{
    pattern_print(terminal, STATE, job, now);
    show_more_lines(terminal, "  ", field_text(job, "reason"));
    pattern_print(terminal, FACTS, job, now);
    show_parents(terminal, json_object_get(job, "after"), now);
    show_attempts(terminal, json_object_get(job, "attempts"), now);
    pattern_print(terminal, START, job, now);
    show_payload(terminal, "    Result: ", job, "result");
    show_payload(terminal, " Published: ", job, "published");
    pattern_print(terminal,
                  "[{restricted}    Result: " DIM SHOW_RESTRICTED PLAIN "]\n"
                  "[   Missing: {missing}]\n"
                  "[    Letter: " LETTER "]",
                  job, now);
}

void show_job_end(const struct terminal *terminal, const json_t *job, usec_t now)
{
    const json_t *attempts = json_object_get(job, "attempts");
    const size_t n = json_array_size(attempts);

    pattern_print(terminal, STATE, job, now);
    show_more_lines(terminal, "  ", field_text(job, "reason"));
    if (n > 0)
        pattern_print(terminal, "[in {top}]", json_array_get(attempts, n - 1), now);
    pattern_print(terminal, "[" LETTER "]", job, now);
}

const struct list_column show_job_columns[] = {
    {"JOB", "{id}", LIST_LEFT},
    {"GROUP", "{group}", LIST_LEFT},
    {"STATE", "{state:state}", LIST_LEFT},
    {"FAILED", "{failed_attempts}/{max_attempts}", LIST_LEFT},
    {"AGE", "{created_at:age}", LIST_RIGHT},
    {"", "[{state=cancelled}" CANCELLED "|" DETAILS "]", LIST_LEFT},
    {0},
};

static const char *event_color(const char *type)
{
    static const char *const alarming[] = {
        "died",         "failed",       "failing", "lost",         "dead",
        "spawn-failed", "cannot-start", "stalled", "roll-stopped", "not-recycled"};
    const char *what = strrchr(type, '.');

    for (size_t i = 0; what && i < ELEMENTS(alarming); i++)
        if (strcmp(what + 1, alarming[i]) == 0)
            return RED;
    return what && strcmp(what, ".ready") == 0 ? GREEN : "";
}

void show_event(const struct terminal *terminal, const json_t *event)
{
    const char *type = field_text(event, "type"), *color = event_color(type);

    terminal_print(terminal, DIM "%s" PLAIN "  %s%-18s%s %s", TIME_OF_DAY(field_usec(event, "at")),
                   color, SAFE(type), *color ? PLAIN : "",
                   field_true(event, "restricted") ? SHOW_RESTRICTED
                                                   : SAFE_LINE(field_text(event, "message")));
}

/* SPDX-License-Identifier: MIT */

/* Shows jobs and events. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/table.h"
#include <string.h>

/* Adds "by uid 0 after 12ms" or "after 12ms: the supervisor is stopping". */
static void add_cancelled(struct joined *remark, const json_t *job)
{
    static const char word[] = "cancelled";
    const char *reason = field_text(job, "reason");
    bool repeats = strncmp(reason, word, strlen(word)) == 0;
    const char *by = repeats ? reason + strlen(word) + strspn(reason + strlen(word), " ") : "";

    joined_add(remark, "%s%safter %s%s%s", SAFE(by), *by ? " " : "",
               SPAN(usec_sub(field_usec(job, "ended_at"), field_usec(job, "created_at"))),
               repeats || *reason == '\0' ? "" : ": ", repeats ? "" : SAFE(reason));
}

/* Adds the details of a state: until when, where, why. */
static void add_remarks(struct joined *remark, const json_t *job, usec_t now)
{
    const char *state = field_text(job, "state"), *reason = field_text(job, "reason");
    usec_t next = field_usec(job, "next_attempt_at"), started = field_usec(job, "started_at");

    if (strcmp(state, "cancelled") == 0) {
        add_cancelled(remark, job);
        return;
    }
    if (strcmp(state, "backoff") == 0 && next > 0)
        joined_add(remark, "next attempt in %s", SPAN(usec_sub(next, now)));
    else if (strcmp(state, "delayed") == 0)
        joined_add(remark, "in %s", SPAN(usec_sub(next, now)));
    else if (strcmp(state, "running") == 0)
        joined_add(remark, "on %s%s%s", SAFE(field_text(job, "worker")), started > 0 ? " for " : "",
                   started > 0 ? SPAN(usec_sub(now, started)) : "");
    if (field_true(job, "cancel_requested"))
        joined_add(remark, "cancellation requested");
    if (field_int(job, "code") != 0)
        joined_add(remark, "code %lld", (long long)field_int(job, "code"));
    if (*reason != '\0')
        joined_add(remark, "%s", FIRST_LINE(reason));
}

/* Shows the state and its details in a line. */
static void show_state_line(const struct terminal *terminal, const char *before, const json_t *job,
                            usec_t now)
{
    const char *state = field_text(job, "state");
    struct joined remark = JOINED_NULL;

    add_remarks(&remark, job, now);
    terminal_print(terminal, "%s%s " BOLD "%s" PLAIN ": %s%s%s", before, DOT(state),
                   SAFE(field_text(job, "id")), STATE(state),
                   *remark.text == '\0'              ? ""
                   : strcmp(state, "cancelled") == 0 ? " "
                                                     : ", ",
                   remark.text);
}

void show_job_state(const struct terminal *terminal, const json_t *job, usec_t now)
{
    char before[FORMAT_SIZE];

    snprintf(before, sizeof(before), "%s  ", TIME_OF_DAY(now));
    show_state_line(terminal, before, job, now);
}

static void show_times(const struct terminal *terminal, const json_t *job, usec_t now)
{
    usec_t created = field_usec(job, "created_at"), started = field_usec(job, "started_at"),
           ended = field_usec(job, "ended_at");

    terminal_print(terminal, "   Created: %s (%s)", TIME(created), AGO(now, created));
    if (started > 0)
        terminal_print(terminal, "   Started: %s (%s)", TIME(started), AGO(now, started));
    if (ended > 0)
        terminal_print(terminal, "     Ended: %s (%s)", TIME(ended), AGO(now, ended));
    if (ended > 0 && started > 0)
        terminal_print(terminal, "      Took: %s, %s of it at work%s",
                       SPAN(usec_sub(ended, created)), SPAN(usec_sub(ended, started)),
                       field_int(job, "attempt") > 1 ? " in the last attempt" : "");
    else if (ended > 0)
        terminal_print(terminal, "      Took: %s%s", SPAN(usec_sub(ended, created)),
                       field_int(job, "attempt") == 0 ? ", none of it at work" : "");
}

static void add_cause(struct table *table, const json_t *attempt, const char *member)
{
    table_add(table, "%s: %s", SAFE(field_text(attempt, member)),
              FIRST_LINE(field_text(attempt, "detail")));
}

static void show_attempts(const struct terminal *terminal, const json_t *attempts, usec_t now)
{
    static const struct list_column columns[] = {
        {NULL, "number", list_number, false},
        {NULL, "worker", list_text, false},
        {NULL, "at", list_ago, false},
        {NULL, "cause", add_cause, false},
        {0},
    };

    if (json_array_size(attempts) == 0)
        return;
    terminal_print(terminal, "  Attempts that failed:");
    list_print(terminal, "            ", columns, attempts, now);
}

/* Shows the beginning of the payload in one line. */
static void show_start(const struct terminal *terminal, const json_t *job)
{
    const json_t *start = json_object_get(job, "payload_start");
    const uint64_t size = field_count(job, "payload_bytes");
    const char *text = field_text(start, "data");

    if (!start)
        return;
    if (field_is(start, "encoding", "utf8"))
        terminal_print(terminal, "   Payload: %s: %s%s", BYTES(size), SAFE_LINE(text),
                       strlen(text) < size ? " …" : "");
    else
        terminal_print(terminal, "   Payload: %s, not text", BYTES(size));
}

static void show_letter_line(const struct terminal *terminal, const char *label, const json_t *job)
{
    const long long number = (long long)field_int(job, "dead_letter");

    if (number > 0)
        terminal_print(terminal,
                       "%sdead letter %lld: 'troupectl dead-letters show %lld', 'troupectl retry "
                       "%lld'",
                       label, number, number, number);
}

void show_job(const struct terminal *terminal, const json_t *job, usec_t now)
{
    show_state_line(terminal, "", job, now);
    show_more_lines(terminal, "  ", field_text(job, "reason"));
    terminal_print(terminal, "     Group: %s%s", SAFE(field_text(job, "group")),
                   field_true(job, "moved") ? ", after it ran out of memory in another" : "");
    terminal_print(terminal, "   Attempt: %lld%s%s", (long long)field_int(job, "attempt"),
                   field_has(job, "worker") ? ", last on " : "", SAFE(field_text(job, "worker")));
    terminal_print(terminal, "    Failed: %lld of %lld allowed attempts",
                   (long long)field_int(job, "failed_attempts"),
                   (long long)field_int(job, "max_attempts"));
    show_times(terminal, job, now);
    if (field_has(job, "key"))
        terminal_print(terminal, "       Key: %s", SAFE(field_text(job, "key")));
    terminal_print(terminal, "  Priority: %s", COUNT(field_count(job, "priority")));
    show_attempts(terminal, json_object_get(job, "attempts"), now);
    show_start(terminal, job);
    show_payload(terminal, "    Result: ", job, "result");
    show_payload(terminal, " Published: ", job, "published");
    show_restricted(terminal, "    Result: ", job);
    if (field_has(job, "missing"))
        terminal_print(terminal, "   Missing: %s", SAFE(field_text(job, "missing")));
    show_letter_line(terminal, "    Letter: ", job);
}

void show_job_end(const struct terminal *terminal, const json_t *job, usec_t now)
{
    show_state_line(terminal, "", job, now);
    show_more_lines(terminal, "  ", field_text(job, "reason"));
    show_letter_line(terminal, "", job);
}

static void add_state(struct table *table, const json_t *job, const char *member)
{
    table_add(table, "%s", STATE(field_text(job, member)));
}

static void add_failed(struct table *table, const json_t *job, const char *member)
{
    table_add(table, "%lld/%lld", (long long)field_int(job, member),
              (long long)field_int(job, "max_attempts"));
}

static void add_age(struct table *table, const json_t *job, const char *member)
{
    table_add(table, "%s", SPAN(usec_sub(table->now, field_usec(job, member))));
}

static void add_remark(struct table *table, const json_t *job, const char *member)
{
    struct joined remark = JOINED_NULL;

    (void)member;
    add_remarks(&remark, job, table->now);
    table_add(table, "%s", remark.text);
}

const struct list_column show_job_columns[] = {
    {"JOB", "id", list_text, false},
    {"GROUP", "group", list_text, false},
    {"STATE", "state", add_state, false},
    {"FAILED", "failed_attempts", add_failed, false},
    {"AGE", "created_at", add_age, true},
    {"", "", add_remark, false},
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

/* SPDX-License-Identifier: MIT */

/* Shows jobs and events. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/table.h"
#include <string.h>

/* Writes "by uid 0 after 12ms" or "after 12ms: the supervisor is stopping". */
static void write_cancelled(FILE *file, const json_t *job)
{
    static const char word[] = "cancelled";
    const char *reason = field_text(job, "reason");
    bool repeats = strncmp(reason, word, strlen(word)) == 0;
    const char *by = repeats ? reason + strlen(word) + strspn(reason + strlen(word), " ") : "";

    fprintf(file, "%s%safter %s%s%s", SAFE(by), *by ? " " : "",
            SPAN(usec_sub(field_usec(job, "ended_at"), field_usec(job, "created_at"))),
            repeats || *reason == '\0' ? "" : ": ", repeats ? "" : SAFE(reason));
}

/* Writes the details of a state: until when, where, why. */
static void write_remark(FILE *file, const json_t *job, usec_t now)
{
    const char *state = field_text(job, "state");
    usec_t next = field_usec(job, "next_attempt_at"), started = field_usec(job, "started_at");

    if (strcmp(state, "cancelled") == 0) {
        write_cancelled(file, job);
        return;
    }
    if (strcmp(state, "backoff") == 0 && next > 0)
        fprintf(file, "next attempt in %s", SPAN(usec_sub(next, now)));
    else if (strcmp(state, "delayed") == 0)
        fprintf(file, "in %s", SPAN(usec_sub(next, now)));
    else if (strcmp(state, "running") == 0)
        fprintf(file, "on %s%s%s", SAFE(field_text(job, "worker")), started > 0 ? " for " : "",
                started > 0 ? SPAN(usec_sub(now, started)) : "");
    if (field_true(job, "cancel_requested"))
        fprintf(file, "%scancellation requested", ftell(file) > 0 ? ", " : "");
    if (field_int(job, "code") != 0)
        fprintf(file, "%scode %lld", ftell(file) > 0 ? ", " : "",
                (long long)field_int(job, "code"));
    if (*field_text(job, "reason") != '\0')
        fprintf(file, "%s%s", ftell(file) > 0 ? ", " : "", SAFE(field_text(job, "reason")));
}

static char *remark(const json_t *job, usec_t now)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (!file)
        return NULL;
    write_remark(file, job, now);
    fclose(file);
    return text;
}

/* The text between a state and its details. */
static const char *separator(const json_t *job, const char *text)
{
    if (!text || *text == '\0')
        return "";
    return field_is(job, "state", "cancelled") ? " " : ", ";
}

void show_job_state(const struct terminal *terminal, const json_t *job, usec_t now)
{
    _cleanup_free_ char *text = remark(job, now);
    const char *state = field_text(job, "state");

    terminal_print(terminal, "%s  %s%s" PLAIN " %s: %s%s" PLAIN "%s%s", TIME_OF_DAY(now),
                   show_state_color(state), show_state_dot(state), SAFE(field_text(job, "id")),
                   show_state_color(state), SAFE(state), separator(job, text), text ? text : "");
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

static void show_attempts(const struct terminal *terminal, const json_t *attempts, usec_t now)
{
    struct table table;

    if (json_array_size(attempts) == 0)
        return;
    terminal_print(terminal, "  Attempts that failed:");
    table_init(&table, 4, "            ");
    for (size_t i = 0; i < json_array_size(attempts); i++) {
        const json_t *attempt = json_array_get(attempts, i);

        table_add(&table, "%lld", (long long)field_int(attempt, "number"));
        table_add(&table, "%s", SAFE(field_text(attempt, "worker")));
        table_add(&table, "%s", AGO(now, field_usec(attempt, "at")));
        table_add(&table, "%s: %s", SAFE(field_text(attempt, "cause")),
                  SAFE(field_text(attempt, "detail")));
    }
    table_print(&table, terminal);
    table_deinit(&table);
}

static void show_bytes(const struct terminal *terminal, const char *label, const json_t *job,
                       const char *name)
{
    _cleanup_free_ char *data = NULL;
    size_t size;

    if (field_payload(job, name, &data, &size) < 0 || !data)
        return;
    terminal_print(terminal, "%s%s", label, BYTES(size));
    if (field_is(json_object_get(job, name), "encoding", "utf8"))
        show_quoted(terminal, "            ", data, 10);
}

void show_job(const struct terminal *terminal, const json_t *job, usec_t now)
{
    _cleanup_free_ char *text = remark(job, now);
    const char *state = field_text(job, "state");

    terminal_print(terminal, "%s%s" PLAIN " " BOLD "%s" PLAIN ": %s%s" PLAIN "%s%s",
                   show_state_color(state), show_state_dot(state), SAFE(field_text(job, "id")),
                   show_state_color(state), SAFE(state), separator(job, text), text ? text : "");
    terminal_print(terminal, "     Group: %s", SAFE(field_text(job, "group")));
    terminal_print(terminal, "   Attempt: %lld of %lld%s%s", (long long)field_int(job, "attempt"),
                   (long long)field_int(job, "max_attempts"),
                   field_has(job, "worker") ? ", last on " : "", SAFE(field_text(job, "worker")));
    show_times(terminal, job, now);
    show_attempts(terminal, json_object_get(job, "attempts"), now);
    show_bytes(terminal, "    Result: ", job, "result");
    show_bytes(terminal, " Published: ", job, "published");
    show_restricted(terminal, "    Result: ", job);
    if (field_has(job, "missing"))
        terminal_print(terminal, " Published: not readable: %s", SAFE(field_text(job, "missing")));
}

void show_jobs(const struct terminal *terminal, const json_t *jobs, usec_t now)
{
    struct table table;

    table_init(&table, 6, "");
    table_add(&table, BOLD "JOB" PLAIN);
    table_add(&table, BOLD "GROUP" PLAIN);
    table_add(&table, BOLD "STATE" PLAIN);
    table_add(&table, BOLD "ATTEMPT" PLAIN);
    table_add(&table, BOLD "AGE" PLAIN);
    table_add(&table, "%s", "");
    table.right[4] = true;
    for (size_t i = 0; i < json_array_size(jobs); i++) {
        const json_t *job = json_array_get(jobs, i);
        _cleanup_free_ char *text = remark(job, now);
        const char *state = field_text(job, "state");

        table_add(&table, "%s", SAFE(field_text(job, "id")));
        table_add(&table, "%s", SAFE(field_text(job, "group")));
        table_add(&table, "%s%s" PLAIN, show_state_color(state), SAFE(state));
        table_add(&table, "%lld/%lld", (long long)field_int(job, "attempt"),
                  (long long)field_int(job, "max_attempts"));
        table_add(&table, "%s", SPAN(usec_sub(now, field_usec(job, "created_at"))));
        table_add(&table, "%s", text ? text : "");
    }
    table_print(&table, terminal);
    table_deinit(&table);
}

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

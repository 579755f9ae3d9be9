/* SPDX-License-Identifier: MIT */

/* Shows a worker, and death reports. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/show/pool-view.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <string.h>

/* How many lines of standard error a worker's status shows; a death report shows all. */
#define STDERR_LINES 10

static void show_worker_title(const struct terminal *terminal, const json_t *worker, bool service,
                              usec_t now)
{
    const char *state = field_text(worker, "state");
    usec_t since = field_usec(worker, "since_at"), restart_at = field_usec(worker, "restart_at");
    struct joined text = JOINED_NULL;

    joined_add(&text, "%s%s%s", STATE_AS(state, pool_state_name(state, service)),
               since > 0 ? " for " : "", since > 0 ? SPAN(usec_sub(now, since)) : "");
    if (restart_at > 0)
        joined_add(&text, "restarts in " BOLD "%s" PLAIN, SPAN(usec_sub(restart_at, now)));
    terminal_print(terminal, "%s " BOLD "%s" PLAIN ": %s", DOT(state),
                   SAFE(field_text(worker, "name")), text.text);
}

/* ", 3 jobs done"; "" for a service. */
static const char *jobs_done(char *buffer, size_t size, const json_t *object, bool service)
{
    uint64_t done = field_count(object, "jobs_done");

    if (service)
        return "";
    snprintf(buffer, size, ", %s job%s done", COUNT(done), plural(done));
    return buffer;
}

static void show_process(const struct terminal *terminal, const json_t *worker, bool service)
{
    uint64_t restarts = field_count(worker, "restarts");
    uint64_t recycled = field_count(worker, "recycled");
    char done[2 * FORMAT_SIZE];

    if (field_has(worker, "pid"))
        terminal_print(terminal, "   Process: pid %lld, generation %lld, %s restart%s%s",
                       (long long)field_int(worker, "pid"),
                       (long long)field_int(worker, "generation"), COUNT(restarts),
                       plural(restarts), jobs_done(done, sizeof(done), worker, service));
    else
        terminal_print(terminal, "   Process: none, generation %lld was the last, %s restart%s",
                       (long long)field_int(worker, "generation"), COUNT(restarts),
                       plural(restarts));
    if (pool_is_spare(worker))
        terminal_print(terminal, "     Spare: it stands by for the worker in the pool");
    else if (field_has(worker, "replacement"))
        terminal_print(terminal, "  Replaced: this is the %s of the worker in the pool",
                       SAFE(field_text(worker, "replacement")));
    else if (recycled > 0)
        terminal_print(terminal, "  Replaced: %s time%s, after the replacement was ready",
                       COUNT(recycled), plural(recycled));
}

void show_worker(const struct terminal *terminal, const json_t *group, const json_t *worker,
                 usec_t now)
{
    const json_t *death = json_object_get(worker, "last_death");
    const char *description = field_text(group, "description");
    usec_t since = field_usec(worker, "job_since_at");
    bool service = field_is(group, "type", "service");

    show_worker_title(terminal, worker, service, now);
    terminal_print(terminal, "     Group: %s%s%s", SAFE(field_text(group, "name")),
                   *description ? " - " : "", SAFE(description));
    show_process(terminal, worker, service);
    if (field_has(worker, "in_force"))
        terminal_print(terminal, "  In force: %s", SAFE(field_text(worker, "in_force")));
    if (field_has(worker, "job"))
        terminal_print(terminal, "       Job: %s%s%s", SAFE(field_text(worker, "job")),
                       since > 0 ? ", for " : "", since > 0 ? SPAN(usec_sub(now, since)) : "");
    if (field_has(worker, "status"))
        terminal_print(terminal, "    Status: %s", SAFE(field_text(worker, "status")));
    show_payload(terminal, " Published: ", worker, "published");
    show_restricted(terminal, " Published: ", worker);
    if (json_is_object(death)) {
        terminal_print(terminal, "Last death: %s%s" PLAIN ", %s, after %s",
                       field_is(death, "cause", "stop") ? "" : RED,
                       SAFE(field_text(death, "detail")), AGO(now, field_usec(death, "at")),
                       SPAN(field_usec(death, "uptime_usec")));
        show_quoted(terminal, "            ", field_text(death, "stderr"), STDERR_LINES);
    }
}

static const char *cause_text(const char *cause)
{
    static const char *const texts[][2] = {
        {"exit", "it ended by itself"},
        {"signal", "a signal that the supervisor did not send"},
        {"oom", "out of memory"},
        {"job_timeout", "its job took too long (TimeoutSec=), or was cancelled and did not end"},
        {"watchdog", "no sign of life while busy (WatchdogSec=)"},
        {"start_timeout", "it did not become ready in time (TimeoutStartSec=)"},
        {"violation", "it broke the protocol"},
        {"no_progress", "no worker of its pool made progress"},
        {"stop", "it was asked to stop"},
        {"system_call", "a system call that [Sandbox] forbids"},
    };

    for (size_t i = 0; i < ELEMENTS(texts); i++)
        if (strcmp(texts[i][0], cause) == 0)
            return texts[i][1];
    return cause;
}

static void show_death_numbers(const struct terminal *terminal, const json_t *death)
{
    bool jobless = field_count(death, "jobs_done") == 0 && !field_has(death, "job");
    char done[2 * FORMAT_SIZE];

    terminal_print(terminal, "    Uptime: %s%s", SPAN(field_usec(death, "uptime_usec")),
                   jobs_done(done, sizeof(done), death, jobless));
    terminal_print(terminal, "     Usage: %s user, %s system, at most %s of memory",
                   SPAN(field_usec(death, "user_usec")), SPAN(field_usec(death, "system_usec")),
                   BYTES(field_count(death, "max_rss_bytes")));
}

/* Shows the messages that it was handling. */
static void show_messages(const struct terminal *terminal, const json_t *death)
{
    const json_t *messages = json_object_get(death, "messages");

    if (json_array_size(messages) > 0)
        terminal_print(terminal, "  Messages:");
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        const char *sender = field_text(message, "sender");

        terminal_print(terminal, "            %s  %lld  '%s' from %s",
                       TIME(field_usec(message, "sent_at")), (long long)field_int(message, "id"),
                       SAFE(field_text(message, "type")), *sender ? SAFE(sender) : "nobody");
    }
}

/* The member is absent if the reply would have become too large. */
static void show_stderr(const struct terminal *terminal, const json_t *death)
{
    const char *text = field_text(death, "stderr");

    show_restricted(terminal, "    Stderr: ", death);
    if (!field_has(death, "stderr"))
        return;
    if (*text == '\0') {
        terminal_print(terminal, "    Stderr: nothing written since %s",
                       field_has(death, "job") ? "the job began" : "it was started");
        return;
    }
    terminal_print(terminal, "    Stderr:");
    show_quoted(terminal, "            ", text, UINT32_MAX);
}

void show_death(const struct terminal *terminal, const json_t *death, usec_t now)
{
    usec_t at = field_usec(death, "at");
    bool stop = field_is(death, "cause", "stop");

    terminal_print(terminal, "%s%s" PLAIN " " BOLD "%s" PLAIN ": %s, %s", stop ? DIM : RED,
                   stop ? "○" : "✗", SAFE(field_text(death, "worker")),
                   SAFE(field_text(death, "detail")), AGO(now, at));
    terminal_print(terminal, "      When: %s, pid %lld, generation %lld", TIME(at),
                   (long long)field_int(death, "pid"), (long long)field_int(death, "generation"));
    terminal_print(terminal, "     Cause: %s%s%s%s", SAFE(cause_text(field_text(death, "cause"))),
                   field_has(death, "signal") ? "; " : "", SAFE(field_text(death, "signal")),
                   field_true(death, "core_dumped") ? ", core dumped" : "");
    if (field_has(death, "command"))
        terminal_print(terminal, "   Command: %s", SAFE(field_text(death, "command")));
    show_death_numbers(terminal, death);
    if (field_has(death, "job"))
        terminal_print(terminal, "       Job: %s, attempt %lld", SAFE(field_text(death, "job")),
                       (long long)field_int(death, "attempt"));
    show_payload(terminal, "     State: ", death, "state");
    show_messages(terminal, death);
    show_stderr(terminal, death);
}

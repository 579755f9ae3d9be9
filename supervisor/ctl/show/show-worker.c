/* SPDX-License-Identifier: MIT */

/* Shows a worker, and death reports. */

#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"

/* How many lines of standard error a worker's status shows; a death report shows all. */
#define STDERR_LINES 10

#define RESTRICTED(label) "[{restricted}" label DIM SHOW_RESTRICTED PLAIN "]"

static const char FACTS[] =
    "{state:dot} " BOLD "{name}" PLAIN ": {shown:state}[ for {since_at:age}]"
    "[, restarts in " BOLD "{restart_at:in}" PLAIN "]\n"
    "     Group: {group.name}[ - {group.description}]\n"
    "   Process: [pid {pid}, generation {generation}|none, generation {generation} was the last], "
    "{restarts:count} restart{restarts:s}"
    "[{pid:if}{takes_jobs}, {jobs_done:count} job{jobs_done:s} done]\n"
    "[{replacement=spare}     Spare: it stands by for the worker in the pool"
    "|  Replaced: this is the {replacement} of the worker in the pool"
    "|  Replaced: {recycled>0:count} time{recycled:s}, after the replacement was ready]\n"
    "[  In force: {in_force}]\n"
    "[  Template: {template.state}[ for {template.since_at:age}][, pid {template.pid}]"
    "[, as it {template.reason}][; {template.exec_usec:span} to start by exec]"
    "[, {template.fork_usec:span} by fork]]\n"
    "[       Job: {job}[, for {job_since_at:age}]]\n"
    "[    Status: {status}]";

static const char LAST_DEATH[] =
    "[Last death: [{last_death.cause=stop}|" RED "]{last_death.detail}" PLAIN
    "[, in {last_death.top}], {last_death.at:ago}, after {last_death.uptime_usec:span}]";

void show_worker(const struct terminal *terminal, const json_t *group, const json_t *worker,
                 usec_t now)
{
    json_auto_t *view = view_worker(group, worker, now);

    pattern_print(terminal, FACTS, view, now);
    show_payload(terminal, " Published: ", view, "published");
    pattern_print(terminal, RESTRICTED(" Published: "), view, now);
    pattern_print(terminal, LAST_DEATH, view, now);
    show_quoted(terminal, "            ", field_text(json_object_get(view, "last_death"), "stderr"),
                STDERR_LINES);
}

static const char DEATH[] =
    "[{cause=stop}" DIM "○|" RED "✗]" PLAIN " " BOLD "{worker}" PLAIN ": {detail}, {at:ago}\n"
    "      When: {at:time}, pid {pid}, generation {generation}\n"
    "     Cause: "
    "[{cause=exit}it ended by itself"
    "|{cause=signal}a signal that the supervisor did not send"
    "|{cause=oom}out of memory"
    "|{cause=job_timeout}its job took too long (TimeoutSec=), or was cancelled and did not end"
    "|{cause=watchdog}no sign of life while busy (WatchdogSec=)"
    "|{cause=start_timeout}it did not become ready in time (TimeoutStartSec=)"
    "|{cause=violation}it broke the protocol"
    "|{cause=no_progress}no worker of its pool made progress"
    "|{cause=stop}it was asked to stop"
    "|{cause=system_call}a system call that SystemCallFilter= forbids"
    "|{cause}][; {signal}][{core_dumped}, core dumped]\n"
    "[   Command: {command}]\n"
    "    Uptime: {uptime_usec:span}[, {jobs_done>0:count} job{jobs_done:s} done"
    "|{job:if}, {jobs_done:count} jobs done]\n"
    "     Usage: {user_usec:span} user, {system_usec:span} system, at most {max_rss_bytes:bytes} "
    "of memory\n"
    "[       Job: {job}, attempt {attempt}]\n"
    "[        In: {top}|        In: not known, as {stack_missing}]";

/* The messages that it was handling. */
static void show_messages(const struct terminal *terminal, const json_t *messages, usec_t now)
{
    static const char pattern[] =
        "            {sent_at:time}  {id}  '{type}' from [{sender}|nobody]";

    if (json_array_size(messages) > 0)
        terminal_print(terminal, "  Messages:");
    for (size_t i = 0; i < json_array_size(messages); i++)
        pattern_print(terminal, pattern, json_array_get(messages, i), now);
}

/* The member is absent if the reply would have become too large. */
static const char STDERR[] =
    RESTRICTED("    Stderr: ") "\n"
                               "[{stderr=}    Stderr: nothing written since [{job:if}the job "
                               "began|it was started]"
                               "|{stderr:if}    Stderr:]";

void show_death(const struct terminal *terminal, const json_t *death, usec_t now)
{
    pattern_print(terminal, DEATH, death, now);
    show_payload(terminal, "     State: ", death, "state");
    show_messages(terminal, json_object_get(death, "messages"), now);
    pattern_print(terminal, STDERR, death, now);
    show_quoted(terminal, "            ", field_text(death, "stderr"), UINT32_MAX);
}

#define PLACE                                                                                      \
    "{count:count} × [{signal}|status {exit_status}|{cause}][{cause=signal}|{cause=exit}| "       \
    "({cause})][ in {top}], [{count=1}{last_at:time}|first {first_at:time}, last {last_at:time}]"

void show_death_place(const struct terminal *terminal, const json_t *place, bool named)
{
    pattern_print(terminal, named ? "{group}: " PLACE : PLACE, place, 0);
}

/* ---- stacks ---- */

static void show_threads(const struct terminal *terminal, const json_t *threads, usec_t now)
{
    static const char thread[] =
        "  " BOLD "{name}" PLAIN
        " ({thread})[{state=crashed}, crashed|{state=running}, could not be stopped]:";
    static const char frame[] =
        "    [{function}|(no symbol at {offset})][{file:if}, {file}:{line}|, {module}]";

    for (size_t i = 0; i < json_array_size(threads); i++) {
        const json_t *item = json_array_get(threads, i), *frames = json_object_get(item, "frames");

        pattern_print(terminal, thread, item, now);
        for (size_t j = 0; j < json_array_size(frames); j++)
            pattern_print(terminal, frame, json_array_get(frames, j), now);
    }
}

void show_stack(const struct terminal *terminal, const json_t *reply, usec_t now)
{
    const json_t *death = json_object_get(reply, "last_death");

    pattern_print(terminal, "{worker}[, pid {pid}][ is in {top}|: no stack, as {stack_missing}]",
                  reply, now);
    show_threads(terminal, json_object_get(reply, "stack"), now);
    if (!json_object_get(death, "stack"))
        return;
    pattern_print(terminal, "{worker} died {at:ago}[ in {top}], {detail}", death, now);
    show_threads(terminal, json_object_get(death, "stack"), now);
}

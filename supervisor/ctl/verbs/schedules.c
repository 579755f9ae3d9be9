/* SPDX-License-Identifier: MIT */

/* The verb schedule. */

#include "shared/base/cleanup.h"
#include "supervisor/config/config-schedule.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/text/value.h"
#include "supervisor/ctl/verbs/listing.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <string.h>

static const struct list_column schedule_columns[] = {
    {"SCHEDULE", "{name}", LIST_LEFT},
    {"STATE", "{state}", LIST_LEFT},
    {"NEXT", "[{next_at:clock}|none]", LIST_LEFT},
    {"IN", "[{next_at:in}]", LIST_RIGHT},
    {"LAST", "[{last.slot:clock}|never]", LIST_LEFT},
    {"OUTCOME", "{last.outcome}[{failures>0}, " RED "{failures:count} failed in a row" PLAIN "]",
     LIST_LEFT},
    {"LIVE", "{live:count}", LIST_RIGHT},
    {"LOST", "[<{missed>0}|{refused>0}>" RED "]{missed:count}[{refused>0}+{refused:count}]" PLAIN,
     LIST_RIGHT},
    {"GROUP", "{group}", LIST_LEFT},
    {0},
};

static const struct list_column decided_columns[] = {
    {"SLOT", "{slot:time}", LIST_LEFT},
    {"OUTCOME", "[{outcome=fired}|" YELLOW "]{outcome}" PLAIN, LIST_LEFT},
    {"WHY", "{cause:full}", LIST_LEFT},
    {0},
};

static const struct list_column coming_columns[] = {
    {"NEXT", "{slot:time}", LIST_LEFT},
    {"FIRED IN", "{due_at:in}", LIST_RIGHT},
    {"", "[{skip}to be skipped]", LIST_LEFT},
    {0},
};

static int list_schedules(struct invocation *invocation)
{
    static const struct listing listing = {.method = CALL_SCHEDULES "List",
                                           .array = "schedules",
                                           .none = "No schedules.",
                                           .columns = schedule_columns};

    json_auto_t *info = NULL;
    int r = listing_run(invocation, &listing, json_object(), invocation->options.limit);

    if (r != EXIT_OK || invocation->options.json)
        return r;
    r = call(invocation, CALL_SUPERVISOR "GetInfo", json_object(), false, &info);
    show_kept_back(&invocation->out, "", info, CONFIG_SCHEDULE_SUFFIX ":");
    return r;
}

static void show_table(const struct invocation *invocation, const struct list_column *columns,
                       const json_t *items)
{
    if (json_array_size(items) == 0)
        return;
    putchar('\n');
    list_print(&invocation->out, "", columns, items, clock_realtime());
}

static void show_schedule(const struct invocation *invocation, const json_t *reply)
{
    static const char pattern[] =
        BOLD "{name}" PLAIN "[: {description}]\n"
             "  {state}[ since {paused_at:time}][: {obstacle}]; jobs go to group {group}\n"
             "  [{live>0}{live:count} live][, {waiting:time} waits for the end]"
             "[; {failures:count} failed in a row]\n"
             "  fired {fired:count}, skipped {skipped:count}, missed {missed:count}, "
             "paused {paused:count}, refused {refused:count}";
    const json_t *schedule = json_object_get(reply, "schedule");
    const json_t *times = json_object_get(schedule, "times");

    pattern_print(&invocation->out, pattern, schedule, clock_realtime());
    for (size_t i = 0; i < json_array_size(times); i++)
        terminal_print(&invocation->out, "  at %s",
                       SAFE(json_string_value(json_array_get(times, i))));
    show_table(invocation, decided_columns, json_object_get(reply, "decided"));
    show_table(invocation, coming_columns, json_object_get(reply, "coming"));
}

static int show(struct invocation *invocation, const char *name)
{
    return call_print(invocation, CALL_SCHEDULES "Get", json_pack("{s:s}", "name", name), false,
                      show_schedule);
}

static int pause_schedule(struct invocation *invocation, const char *name)
{
    return call_print(invocation, CALL_SCHEDULES "Pause", json_pack("{s:s}", "name", name), false,
                      NULL);
}

static int resume_schedule(struct invocation *invocation, const char *name)
{
    return call_print(invocation, CALL_SCHEDULES "Resume", json_pack("{s:s}", "name", name), false,
                      NULL);
}

static void show_id(const struct invocation *invocation, const json_t *reply)
{
    terminal_print(&invocation->out, "%s", field_text(reply, "id"));
}

static int run_schedule(struct invocation *invocation, const char *name)
{
    return call_print(invocation, CALL_SCHEDULES "Run", json_pack("{s:s}", "name", name), false,
                      show_id);
}

static int take_slot(const char *text, json_t **ret)
{
    usec_t time;

    if (value_slot(text, clock_realtime(), &time) < 0) {
        complain("'%s' is not a time; allowed: YYYY-MM-DD [HH:MM[:SS]], 2026-11-22T02:00:00Z, "
                 "@SECONDS",
                 text);
        return EXIT_USAGE;
    }
    *ret = json_integer((json_int_t)time);
    return EXIT_OK;
}

static int skip(struct invocation *invocation, const char *name)
{
    json_t *slot = NULL;
    int r = take_slot(invocation_operand(invocation, 1), &slot);

    return r != EXIT_OK
               ? r
               : call_print(invocation, CALL_SCHEDULES "Skip",
                            json_pack("{s:s, s:o}", "name", name, "slot", slot), false, NULL);
}

static void show_backfill(const struct invocation *invocation, const json_t *reply)
{
    if (invocation->options.dry_run) {
        terminal_print(&invocation->out,
                       "%s slot%s; jobs would be created for those that have none",
                       COUNT(field_count(reply, "slots")), plural(field_count(reply, "slots")));
        return;
    }
    terminal_print(&invocation->out, "%s created, %s existed", COUNT(field_count(reply, "created")),
                   COUNT(field_count(reply, "existing")));
}

static int backfill(struct invocation *invocation, const char *name)
{
    json_auto_t *reply = NULL;
    json_t *from = NULL, *to = NULL;
    int r = take_slot(invocation_operand(invocation, 1), &from);

    if (r == EXIT_OK)
        r = take_slot(invocation_operand(invocation, 2), &to);
    if (r != EXIT_OK) {
        json_decref(from);
        return r;
    }
    r = call(invocation, CALL_SCHEDULES "Backfill",
             json_pack("{s:s, s:o, s:o, s:b}", "name", name, "from", from, "to", to, "dry_run",
                       invocation->options.dry_run),
             false, &reply);
    if (r == EXIT_OK)
        r = output_reply(invocation, reply, show_backfill);
    if (r != EXIT_OK || !field_has(reply, "cause"))
        return r;
    complain("not all jobs were created: %s", SAFE(field_text(reply, "cause")));
    return EXIT_BUSY;
}

static const struct action {
    const char *name;
    size_t n_times;
    bool several;
    int (*run)(struct invocation *invocation, const char *name);
} actions[] = {
    {"show", 0, true, show},
    {"pause", 0, true, pause_schedule},
    {"resume", 0, true, resume_schedule},
    {"run", 0, true, run_schedule},
    {"backfill", 2, false, backfill},
    {"skip", 1, false, skip},
};

static const struct action *find_action(const char *name, size_t n_operands)
{
    for (size_t i = 0; i < ELEMENTS(actions); i++)
        if (strcmp(actions[i].name, name) == 0 && n_operands > actions[i].n_times &&
            (actions[i].several || n_operands == actions[i].n_times + 1))
            return &actions[i];
    return NULL;
}

int verb_schedule(struct invocation *invocation)
{
    const char *name = invocation_operand(invocation, 0);
    const struct action *action;

    if (!name || (strcmp(name, "list") == 0 && invocation->n_operands == 1))
        return list_schedules(invocation);
    invocation->operands++;
    invocation->n_operands--;
    action = find_action(name, invocation->n_operands);
    if (!action) {
        complain("usage: troupectl schedule [list | show|pause|resume|run NAME... | "
                 "backfill NAME FROM TO | skip NAME SLOT]");
        return EXIT_USAGE;
    }
    return action->several ? invocation_each(invocation, 0, action->run)
                           : action->run(invocation, invocation_operand(invocation, 0));
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/upgrade/kinds.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/ring/memory.h"
#include "supervisor/client/attachment.h"
#include "supervisor/event/death.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/group-save.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/restore.h"
#include "supervisor/job/job-facts.h"
#include "supervisor/job/job-stream.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include "supervisor/pool/slot/slot.h"
#include "supervisor/process/kept-state.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/store/schedule-rows.h"
#include <inttypes.h>
#include <string.h>

/* The version of rows and holdings that are written without a table. Raise it with every change. */
#define UNDESCRIBED_VERSION 3

struct kind {
    enum upgrade_stage stage;
    const struct record *record; /* NULL = `name`, whose rows no table describes */
    const char *name;
    /* Saves the rows of an actor, also of the kinds that follow. NULL = save.c does. */
    void (*save)(const struct actor *actor, struct saver *saver);
    /* One of these. */
    int (*restore)(const struct group_context *context, struct saved_reader *row);
    int (*of_messages)(struct message_context *context, struct saved_reader *row);
};

static int restore_death(const struct group_context *context, struct saved_reader *row)
{
    return death_log_restore(context->deaths, row);
}

static int restore_dead_letter(const struct group_context *context, struct saved_reader *row)
{
    return dead_letter_restore_row(&context->messages->dead_letters, context->deaths,
                                   context->durable->inherited, row);
}

static int restore_store_tally(const struct group_context *context, struct saved_reader *row)
{
    return store_tally_restore_row(context->durable->store, row);
}

/* Makes the cell of a saved actor that something is about to come for. Otherwise a cell without
 * workers is made only when something comes. */
static int make_cell(const struct group_context *context, struct saved_reader *row)
{
    struct actor_row actor;
    int r = actor_row_read(row, &actor);
    const char *key = r == 0 && actor.needed ? strchr(actor.name, '/') : NULL;
    struct group *group = key ? registry_group_of(context->registry, actor.name) : NULL;

    if (group && group_is_keyed(group))
        (void)group_restore_cell(group, key + 1, strcspn(key + 1, "/"));
    return r;
}

/* Within a stage in this order: later ones refer to earlier ones. */
static const struct kind KINDS[] = {
    {UPGRADE_REFERENCES, &MESSAGES_RECORD, .of_messages = messages_inherit},
    {UPGRADE_REFERENCES, &ACTOR_RECORD, .save = actor_save, .of_messages = actor_row_restore},
    {UPGRADE_GROUPS, &DEATH_RECORD, .restore = restore_death},
    {UPGRADE_GROUPS, &DEAD_LETTER_RECORD, .restore = restore_dead_letter},
    {UPGRADE_GROUPS, &GROUP_RECORD, .restore = group_restore_row},
    {UPGRADE_GROUPS, &CELL_RECORD, .restore = cell_restore_row},
    {UPGRADE_GROUPS, &STORE_STATS_RECORD, .restore = restore_store_tally},
    {UPGRADE_JOBS, &SAVED_JOB_RECORD, .restore = job_restore_row},
    {UPGRADE_JOBS, &SAVED_ITEM_RECORD, .restore = job_item_restore_row},
    {UPGRADE_JOBS, .name = SLOT_ROW, .restore = slot_restore_row},
    {UPGRADE_MESSAGES, &ACTOR_RECORD, .restore = make_cell},
    {UPGRADE_MESSAGES, &EXCHANGE_RECORD, .save = exchange_save,
     .of_messages = exchange_restore_row},
    {UPGRADE_MESSAGES, &SUBSCRIPTION_RECORD, .of_messages = subscription_restore_row},
    {UPGRADE_MESSAGES, &ACTOR_NAME_RECORD, .save = actor_names_save,
     .of_messages = actor_name_restore_row},
    {UPGRADE_MESSAGES, &ASK_RECORD, .save = asks_save, .of_messages = ask_restore_row},
    {UPGRADE_MESSAGES, &INBOX_RECORD, .save = delivery_save, .of_messages = inbox_restore},
    {UPGRADE_MESSAGES, .name = MAIL_ROW, .of_messages = mail_restore},
    {UPGRADE_MESSAGES, &MONITOR_RECORD, .save = monitors_save, .of_messages = monitor_restore_row},
    {UPGRADE_MESSAGES, &SCHEDULE_RECORD, .save = schedules_save,
     .of_messages = schedule_restore_row},
    {UPGRADE_MESSAGES, &CLIENT_SUBMIT_RECORD, .save = attachment_save,
     .restore = attachment_submit_restore_row},
    {UPGRADE_MESSAGES, &CLIENT_WAIT_RECORD, .restore = attachment_wait_restore_row},
};

/* The records of memory that outlives the supervisor, and of parts of rows. */
static const struct record *const OTHER_RECORDS[] = {
    &JOB_PAGE_RECORD,   &SLOT_RECORD,     &CELL_KEPT_RECORD,
    &GROUP_KEPT_RECORD, &ENVELOPE_RECORD, &SCHEDULE_ROW_RECORD,
};

const struct record *upgrade_record(size_t i)
{
    if (i < ELEMENTS(OTHER_RECORDS))
        return OTHER_RECORDS[i];
    for (size_t j = 0; j < ELEMENTS(KINDS); j++)
        if (KINDS[j].record && i-- == ELEMENTS(OTHER_RECORDS))
            return KINDS[j].record;
    return NULL;
}

uint64_t upgrade_layout(void)
{
    const struct record *record;
    uint64_t digest =
        (uint64_t)MEMORY_VERSION << 32 | KEPT_STATES_VERSION << 16 | UNDESCRIBED_VERSION;

    for (size_t i = 0; (record = upgrade_record(i)); i++)
        digest = record_digest(digest, record);
    return digest;
}

void upgrade_save_actors(const struct message_context *context, struct saver *saver)
{
    record_save(saver, &MESSAGES_RECORD, context, NULL);
    for (size_t i = 0; i < ELEMENTS(KINDS); i++)
        if (KINDS[i].save)
            actors_save_each(context, saver, KINDS[i].save);
}

struct scan {
    const struct kind *kind;
    const struct group_context *context;
};

static int restore_row(void *userdata, struct saved_reader *row)
{
    const struct scan *scan = userdata;

    return scan->kind->of_messages ? scan->kind->of_messages(scan->context->messages, row)
                                   : scan->kind->restore(scan->context, row);
}

static void restore_kind(const struct kind *kind, const struct group_context *context,
                         const struct saved_file *file)
{
    const char *name = kind->record ? kind->record->name : kind->name;
    struct scan scan = {.kind = kind, .context = context};
    const uint64_t n_refused = saved_file_scan(file, name, restore_row, &scan);

    if (n_refused > 0)
        log_error("%" PRIu64 " rows \"%s\" of the last supervisor are dropped: they are damaged, "
                  "what they belong to is gone, or there is no memory",
                  n_refused, name);
}

void upgrade_restore(enum upgrade_stage stage, const struct group_context *context,
                     const struct saved_file *file)
{
    for (size_t i = 0; i < ELEMENTS(KINDS); i++)
        if (KINDS[i].stage == stage)
            restore_kind(&KINDS[i], context, file);
    if (stage == UPGRADE_JOBS && ties_settle(context->jobs, false) > 0)
        log_error("jobs for which others wait are lost in the upgrade: they count as cancelled");
    if (stage == UPGRADE_MESSAGES)
        actors_settle(context->messages);
}

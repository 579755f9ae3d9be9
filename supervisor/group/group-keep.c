/* SPDX-License-Identifier: MIT */
/* Keeps what was asked of a group for the next supervisor, and continues from what the last one
 * kept. */

#include "supervisor/config/keys/draft.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-private.h"
#include "supervisor/process/kept-state.h"
#include "supervisor/process/process.h"
#include "supervisor/succession/record.h"
#include <string.h>

/* Valid when zeroed: nothing was asked. Flags are as in struct slot_record. */
#define ROW group_record
#define GROUP_FIELDS(F)                                                                            \
    F(MEMORY, size, uint64_t, BELOW(size, GROUP_SIZE_MAX))                                         \
    F(MEMORY, configured_size, uint64_t, NUMBER(configured_size))                                  \
    F(MEMORY, generations, uint64_t, NUMBER(generations)) /* of struct pool_set */                 \
    F(MEMORY, wanted, uint8_t, NUMBER(wanted))                                                     \
    F(MEMORY, stopped, uint8_t, NUMBER(stopped))                                                   \
    F(MEMORY, paused, uint8_t, NUMBER(paused))                                                     \
    F(MEMORY, draining, uint8_t, NUMBER(draining))                                                 \
    F(MEMORY, limited, uint8_t, NUMBER(limited)) /* at run time */                                 \
    F(MEMORY, lives, uint8_t, NUMBER(lives))     /* as in struct cell_heard */                     \
    F(MEMORY, pauses, uint8_t, NUMBER(pauses))                                                     \
    F(MEMORY, sizes, uint8_t, NUMBER(sizes))
struct group_record {
    GROUP_FIELDS(MEMBER)
};

const struct record GROUP_KEPT_RECORD = RECORD_OF("group-kept", GROUP_FIELDS(TYPED_FIELD));

static struct group_record *record_of(const struct group *group)
{
    return group->kept ? (struct group_record *)(void *)group->kept->data : NULL;
}

void group_keep(struct group *group)
{
    struct group_record *record = record_of(group);

    if (!record || group->resumes)
        return; /* the record is still the last supervisor's */
    record->size = group->size;
    record->configured_size = config_size_number(group->config->size);
    record->wanted = group->wanted;
    record->stopped = !group->wanted && !group_is_pending(group);
    record->paused = group->pause == CELL_PAUSED;
    record->draining = group->drain != GROUP_OPEN;
    record->limited = limits_are_set(&group->limits);
    record->lives = group->commands.heard.lives;
    record->pauses = group->commands.heard.pauses;
    record->sizes = group->commands.heard.sizes;
}

bool group_kept_limits(const struct group *group)
{
    return group->resumes && record_of(group)->limited;
}

void group_keep_config(struct group *group)
{
    const struct config_draft *draft = group->config->draft;
    struct process_context *process = group->context->pools->process;
    struct held *held;

    if (!draft || draft->text.size == 0 || group->config->unread)
        return;
    held = held_take(&process->held, HOLDING_CONFIG, group->name);
    if (held)
        held_adopt(held, &group->text_client, &group->text_holding);
    (void)holding_put_text(&group->text_holding, &process->spawner, &group->text_client,
                           &(struct holding_content){.kind = HOLDING_CONFIG, .name = group->name},
                           draft->text.bytes, draft->text.size);
}

void group_forget_config(struct group *group)
{
    struct process_context *process = group->context->pools->process;

    if (!process->kept.for_next)
        holding_drop(&group->text_holding, &process->spawner);
    spawner_forget(&process->spawner, &group->text_client);
}

void group_open_kept(struct group *group)
{
    struct group_record *record;

    group->kept =
        kept_state_open(&group->context->pools->process->kept, group->name, &group->resumes);
    record = record_of(group);
    group->resumes = group->resumes && record_is_sound(&GROUP_KEPT_RECORD, record);
    group->pools.generations = record ? &record->generations : &group->generations;
}

/* Another Size= in the file replaces an earlier resize, as in a reload. */
static void resume_size(struct group *group, const struct group_record *record)
{
    const struct config_size size = {(unsigned)record->size, (unsigned)record->size};

    if (record->size == group->size || record->size < 1 ||
        record->configured_size != config_size_number(group->config->size) ||
        group_reserve(group, size) < 0)
        return;
    group->size = (size_t)record->size;
    group_command(group, &(struct cell_command){.type = CELL_RESIZE, .range = size});
}

void group_resume(struct group *group)
{
    const struct group_record *record = record_of(group);

    if (!group->resumes)
        return;
    resume_size(group, record);
    if (record->paused && group->pause != CELL_PAUSED) /* else cells may differ */
        group_set_paused(group, true);
    group->drain = record->draining ? GROUP_DRAINS : GROUP_OPEN;
    group->wanted = record->wanted;
    if (record->wanted || record->stopped)
        group_set_pending(group, false);
    group_commands_finish(group); /* before what was asked of single cells */
    group->commands.heard = (struct cell_heard){record->lives, record->pauses, record->sizes};
}

int group_resume_cell(struct group *group, const char *key, size_t size, struct cell **ret)
{
    char text[PROTOCOL_NAME_MAX + 1];
    int r;

    *ret = group_find_cell(group, key, size);
    if (*ret || !group_is_keyed(group) || size >= sizeof(text) || !protocol_name_valid(key, size))
        return 0;
    memcpy(text, key, size);
    text[size] = '\0';
    r = cell_new(ret, group, text);
    if (r == 0)
        cell_table_add(&group->cells, *ret);
    return r;
}

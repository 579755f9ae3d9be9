/* SPDX-License-Identifier: MIT */
#include "supervisor/group/group-save.h"

#include "supervisor/event/death.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/pool/slot/slot.h"
#include <errno.h>
#include <string.h>

/* ---- saving ---- */

#define ROW              job_counts
#define COUNTS_FIELDS(F) F(UPGRADE, totals, FIRST(n, JOBS_LIVE))
static const struct record JOB_COUNTS_RECORD = RECORD("job-counts", COUNTS_FIELDS);
#undef ROW

#define ROW job_history
#define HISTORY_FIELDS(F)                                                                          \
    F(UPGRADE, latency, SUBRECORD(latency, LATENCY_RECORD))                                        \
    F(UPGRADE, work, SUBRECORD(work, LATENCY_RECORD))                                              \
    F(UPGRADE, outcomes, SUBRECORD(outcomes, OUTCOMES_RECORD))
static const struct record JOB_HISTORY_RECORD = RECORD("job-history", HISTORY_FIELDS);
#undef ROW

#define ROW group
#define GROUP_FIELDS(F)                                                                            \
    F(UPGRADE, message_log, NUMBER(message_log))                                                   \
    F(UPGRADE, deaths, NUMBER(pools.n_deaths))                                                     \
    F(UPGRADE, died_of, ARRAY(pools.tally.n_died_of))                                              \
    F(UPGRADE, commands_died, NUMBER(pools.tally.n_commands_died))                                 \
    F(UPGRADE, restarts, NUMBER(pools.tally.n_restarts))                                           \
    F(UPGRADE, forks, NUMBER(pools.tally.n_forks))                                                 \
    F(UPGRADE, dead_high, NUMBER(last_dead.id.high))                                               \
    F(UPGRADE, dead_low, NUMBER(last_dead.id.low))                                                 \
    F(UPGRADE, dead_name, STRING(last_dead.id.name))                                               \
    F(UPGRADE, dead_at, NUMBER(last_dead.at))                                                      \
    F(UPGRADE, dead_reason, STRING(last_dead.reason))                                              \
    F(UPGRADE, counts, SUBRECORD(counts, JOB_COUNTS_RECORD))                                       \
    F(UPGRADE, history, SUBRECORD(history, JOB_HISTORY_RECORD))                                    \
    F(UPGRADE, wait, SUBRECORD(wait, HISTOGRAM_RECORD))                                            \
    F(UPGRADE, run, SUBRECORD(run, HISTOGRAM_RECORD))
const struct record GROUP_RECORD = RECORD(GROUP_ROW, GROUP_FIELDS);
#undef ROW

#define ROW cell
#define CELL_FIELDS(F)                                                                             \
    F(UPGRADE, deaths, NUMBER(pool.n_deaths))                                                      \
    F(UPGRADE, counts, SUBRECORD(counts, JOB_COUNTS_RECORD))                                       \
    F(UPGRADE, history, SUBRECORD(history, JOB_HISTORY_RECORD))
const struct record CELL_RECORD = RECORD(CELL_ROW, CELL_FIELDS);

static void save_group(const struct group *group, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_text(&row, group->name);
    record_put(&row, &GROUP_RECORD, group);
    saved_add(saver, GROUP_ROW, &row, NULL);
}

static void save_slot(struct slot *slot, struct saver *saver)
{
    struct saved_writer row = {0};

    slot_keep(slot); /* its record has not followed the jobs in hand */
    saved_put_text(&row, slot->name);
    death_put(&row, slot->last_death);
    saved_add(saver, SLOT_ROW, &row, NULL);
}

/* With its slots; their standbys have no statistics. */
static void save_cell(const struct cell *cell, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_text(&row, cell->group->name);
    saved_put_text(&row, cell->key);
    record_put(&row, &CELL_RECORD, cell);
    saved_add(saver, CELL_ROW, &row, NULL);
    for (size_t i = 0; i < cell->pool.size; i++)
        save_slot(cell->pool.slots[i], saver);
}

void groups_save(const struct group_context *context, struct saver *saver)
{
    registry_each_group (group, context->registry) {
        save_group(group, saver);
        group_each_cell (cell, group)
            save_cell(cell, saver);
    }
}

/* ---- restoring ---- */

static struct group *get_group(const struct group_context *context, struct saved_reader *row)
{
    char name[CONFIG_GROUP_NAME_MAX + 1];

    saved_get_text(row, name, sizeof(name));
    return registry_find(context->registry, name);
}

int group_restore_row(const struct group_context *context, struct saved_reader *row)
{
    struct group *group = get_group(context, row);

    if (group) {
        record_get(row, &GROUP_RECORD, group);
        group_set_message_log(group, group->message_log);
    }
    return row->damaged ? -EBADMSG : 0;
}

/* Makes the cell if it is missing. */
int cell_restore_row(const struct group_context *context, struct saved_reader *row)
{
    struct group *group = get_group(context, row);
    char key[PROTOCOL_NAME_MAX + 1];
    struct cell *cell = NULL;
    int r = 0;

    saved_get_text(row, key, sizeof(key));
    if (row->damaged)
        return -EBADMSG;
    if (group && group_is_keyed(group) == (*key != '\0'))
        r = group_resume_cell(group, key, strlen(key), &cell);
    if (cell)
        record_get(row, &CELL_RECORD, cell);
    return row->damaged ? -EBADMSG : r;
}

int slot_restore_row(const struct group_context *context, struct saved_reader *row)
{
    struct registry_target target;
    char name[DEATH_WORKER_MAX];

    saved_get_text(row, name, sizeof(name));
    if (!row->damaged && registry_resolve(context->registry, name, &target) == 0 && target.slot)
        slot_take_last_death(target.slot, death_get(row, context->deaths));
    return row->damaged ? -EBADMSG : 0;
}

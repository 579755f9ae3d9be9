/* SPDX-License-Identifier: MIT */
#include "supervisor/group/group-save.h"

#include "supervisor/group/cell/cell-save.h"
#include "supervisor/group/cell/job-stats-save.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/pool/slot/slot-save.h"
#include <errno.h>
#include <string.h>

/* ---- saving ---- */

/* What only metrics show. */
static void put_tally(struct saved_writer *row, const struct group *group)
{
    const struct pool_tally *tally = &group->pools.tally;
    const size_t fields = saved_begin(row);

    for (size_t i = 0; i < _DEATH_N_CAUSES; i++)
        saved_put_number(row, tally->n_died_of[i]);
    saved_end(row, fields);
    saved_put_number(row, tally->n_commands_died);
    saved_put_number(row, tally->n_restarts);
    histogram_put(row, &group->wait);
    histogram_put(row, &group->run);
}

static int save_group(const struct group *group, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_text(&row, group->name);
    saved_put_number(&row, group->message_log);
    saved_put_number(&row, group->pools.n_deaths);
    saved_put_number(&row, group->last_dead.id.high);
    saved_put_number(&row, group->last_dead.id.low);
    saved_put_text(&row, group->last_dead.id.name);
    saved_put_number(&row, group->last_dead.at);
    saved_put_text(&row, group->last_dead.reason);
    job_stats_put(&row, &group->counts, &group->history);
    put_tally(&row, group);
    return saved_add(saver, GROUP_ROW, &row, NULL);
}

static int save_slot(const struct slot *slot, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_text(&row, slot->name);
    slot_put(&row, slot);
    return saved_add(saver, SLOT_ROW, &row, NULL);
}

/* Its standbys have no statistics. */
static int save_slots(const struct cell *cell, struct saver *saver)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < cell->pool.size; i++)
        r = save_slot(cell->pool.slots[i], saver);
    return r;
}

static int save_cell(const struct cell *cell, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_text(&row, cell->group->name);
    saved_put_text(&row, cell->key);
    cell_put(&row, cell);
    return saved_add(saver, CELL_ROW, &row, NULL);
}

int groups_save(const struct group_context *context, struct saver *saver)
{
    struct group *group;
    size_t cursor = 0;
    int r = 0;

    while (r == 0 && (group = registry_next(context->registry, &cursor))) {
        r = save_group(group, saver);
        group_each_cell (cell, group) {
            if (r == 0)
                r = save_cell(cell, saver);
            if (r == 0)
                r = save_slots(cell, saver);
        }
    }
    return r;
}

/* ---- restoring ---- */

static struct group *get_group(const struct group_context *context, struct saved_reader *row)
{
    char name[CONFIG_GROUP_NAME_MAX + 1];

    saved_get_text(row, name, sizeof(name));
    return registry_find(context->registry, name);
}

static void get_tally(struct saved_reader *row, struct group *group)
{
    struct pool_tally *tally = &group->pools.tally;
    struct saved_reader fields = saved_get_fields(row);

    for (size_t i = 0; i < _DEATH_N_CAUSES; i++)
        tally->n_died_of[i] += saved_get_number(&fields);
    tally->n_commands_died += saved_get_number(row);
    tally->n_restarts += saved_get_number(row);
    histogram_get(row, &group->wait);
    histogram_get(row, &group->run);
}

static void get_last_dead(struct saved_reader *row, struct group_dead *dead)
{
    dead->id.high = saved_get_number(row);
    dead->id.low = saved_get_number(row);
    saved_get_text(row, dead->id.name, sizeof(dead->id.name));
    dead->at = saved_get_number(row);
    saved_get_text(row, dead->reason, sizeof(dead->reason));
}

int group_restore_row(const struct group_context *context, struct saved_reader *row)
{
    struct group *group = get_group(context, row);

    if (!group)
        return row->damaged ? -EBADMSG : 0;
    group_set_message_log(group, (uint8_t)saved_get_below(row, UINT8_MAX));
    group->pools.n_deaths += saved_get_number(row);
    get_last_dead(row, &group->last_dead);
    job_stats_get(row, &group->counts, &group->history);
    get_tally(row, group);
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
    return cell ? cell_get(row, cell) : r;
}

int slot_restore_row(const struct group_context *context, struct saved_reader *row)
{
    struct registry_target target;
    char name[DEATH_WORKER_MAX];

    saved_get_text(row, name, sizeof(name));
    if (!row->damaged && registry_resolve(context->registry, name, &target) == 0 && target.slot)
        slot_get(row, target.slot, context->deaths);
    return row->damaged ? -EBADMSG : 0;
}

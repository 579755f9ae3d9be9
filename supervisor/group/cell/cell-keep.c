/* SPDX-License-Identifier: MIT */

/* Keeps requests about a keyed cell (paused, stopped, resized) for the next supervisor, and
 * continues with those that the last one kept. A group keeps those about its only cell itself. */

#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/process/kept-state.h"
#include "supervisor/process/process.h"
#include "supervisor/succession/record.h"
#include <stdio.h>

/* Valid when zeroed: a cell of which nothing is known. Flags are as in struct slot_record. */
#define ROW cell_record
#define CELL_FIELDS(F)                                                                             \
    F(MEMORY, size, uint64_t, BELOW(size, GROUP_SIZE_MAX)) /* 0 = its group's */                   \
    F(MEMORY, configured_size, uint64_t, NUMBER(configured_size))                                  \
    F(MEMORY, idle_since, usec_t, NUMBER(idle_since)) /* monotonic */                              \
    F(MEMORY, known, uint8_t, NUMBER(known))                                                       \
    F(MEMORY, wanted, uint8_t, NUMBER(wanted))                                                     \
    F(MEMORY, paused, uint8_t, NUMBER(paused))                                                     \
    F(MEMORY, retiring, uint8_t, NUMBER(retiring))                                                 \
    F(MEMORY, lives, uint8_t, NUMBER(lives)) /* as in struct cell_heard */                         \
    F(MEMORY, pauses, uint8_t, NUMBER(pauses))                                                     \
    F(MEMORY, sizes, uint8_t, NUMBER(sizes))                                                       \
    F(MEMORY, maker, uint64_t, NUMBER(maker)) /* the user of the cell's maker + 1; 0 = none */
struct cell_record {
    CELL_FIELDS(MEMBER)
};

const struct record CELL_KEPT_RECORD = RECORD_OF("cell-kept", CELL_FIELDS(TYPED_FIELD));

static struct cell_record *record_of(const struct cell *cell)
{
    return cell->kept ? (struct cell_record *)(void *)cell->kept->data : NULL;
}

void cell_open_kept(struct cell *cell)
{
    char name[KEPT_NAME_MAX + 2];

    if (*cell->key == '\0')
        return;
    (void)snprintf(name, sizeof(name), "%s/", cell->name);
    cell->kept = kept_state_open(&cell->context->pools->process->kept, name, &cell->resumes);
    cell->resumes = cell->resumes && record_of(cell)->known &&
                    record_is_sound(&CELL_KEPT_RECORD, record_of(cell));
    if (cell->resumes && record_of(cell)->maker > 0)
        submitters_set_maker(&cell->submitters, (uid_t)(record_of(cell)->maker - 1));
}

void cell_keep(struct cell *cell)
{
    struct cell_record *record = record_of(cell);

    if (!record || cell->resumes)
        return; /* the record is still the last supervisor's */
    record->known = true;
    record->size = cell_has_own_size(cell) || config_is_elastic(cell->config) ? cell->pool.size : 0;
    record->configured_size = config_size_number(cell->config->size);
    record->idle_since = cell->idle_since;
    record->wanted = cell->pool.wanted;
    record->paused = cell->pause == CELL_PAUSED;
    record->retiring = cell_is_retiring(cell);
    record->maker =
        cell->submitters.maker ? submitter_uid(cell->submitters.maker) + UINT64_C(1) : 0;
    record->lives = cell->heard.lives;
    record->pauses = cell->heard.pauses;
    record->sizes = cell->heard.sizes;
}

/* Another Size= in the file replaces an earlier resize, as in a reload. */
static void resume_size(struct cell *cell, const struct cell_record *record)
{
    if (record->size < 1 || record->configured_size != config_size_number(cell->config->size) ||
        pool_reserve(&cell->pool, (size_t)record->size) < 0)
        return;
    pool_set_size(&cell->pool, (size_t)record->size);
}

void cell_set_maker(struct cell *cell, uid_t uid)
{
    submitters_set_maker(&cell->submitters, uid);
    cell_keep(cell);
}

/* The last supervisor may have ended before a command to the group came to this cell. */
void cell_resume(struct cell *cell)
{
    const struct cell_record *record = record_of(cell);

    cell->heard = cell->group->commands.heard;
    cell->pool.wanted = cell->group->wanted;
    if (!cell->resumes)
        return;
    if (record->sizes == cell->heard.sizes)
        resume_size(cell, record);
    if (record->pauses == cell->heard.pauses && (record->paused || cell->pause == CELL_PAUSED))
        cell_set_pause(cell, record->paused ? CELL_PAUSED : CELL_RUNS);
    if (record->lives == cell->heard.lives)
        cell->pool.wanted = record->wanted;
    cell->idle_since = usec_min(record->idle_since, cell_now(cell));
    if (record->retiring)
        cell_retire(cell);
    cell->resumes = false;
}

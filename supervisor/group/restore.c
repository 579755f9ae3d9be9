/* SPDX-License-Identifier: MIT */
#include "supervisor/group/restore.h"

#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "supervisor/group/cell/cell-backlog.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/restore-private.h"
#include "supervisor/group/undescribed.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-to-row.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Payloads that are read at a time. */
#define RESTORE_BYTES (UINT64_C(16) << 20)

/* Returns the group, if it is being restored. */
static struct group *find_group(const struct restore *restore, const char *name, size_t size)
{
    struct group *group = registry_find_text(restore->context->registry, name, size);

    return group && group->restores ? group : NULL;
}

/* Rows that are left out come back at the next start. */
static void leave_out(const struct restore *restore)
{
    restore->context->durable->incomplete = true;
}

struct group *restore_group_of_row(const struct restore *restore, const char *name, size_t size,
                                   int64_t number)
{
    struct registry *registry = restore->context->registry;
    struct group *group;
    int r;

    if (registry->stopping || number >= restore->chunk->end ||
        registry_find_text(registry, name, size))
        return find_group(restore, name, size);
    r = group_new_undescribed(&group, restore->context, name, size);
    if (r == -ENOMEM)
        leave_out(restore);
    if (r < 0) {
        log_error("%.*s: no file describes it, and its jobs on disk cannot be listed: %s",
                  (int)size, name, strerror(-r));
        return NULL;
    }
    group->new_from = restore->chunk->end;
    group->restores = true;
    return group;
}

/* ---- in the storage thread ---- */

static int copy_row(void *userdata, const struct job_row *row)
{
    struct restore_chunk *chunk = userdata;
    struct restore_row *copy = &chunk->rows[chunk->n++];

    *copy = (struct restore_row){
        .number = row->number,
        .uid = row->facts.submitter_uid,
        .payload_size = row->payload_size,
        .priority = row->priority,
        .waits = row->state == JOB_ROW_WAITING && row->cause == PROTOCOL_CAUSE_NONE,
        .has_deadline = row->deadline != 0,
    };
    if (row->group_size < sizeof(copy->group))
        memcpy(copy->group, row->group, row->group_size);
    if (row->name_size > 0 && row->name_size < sizeof(copy->name))
        memcpy(copy->name, row->name, row->name_size);
    /* A longer key names no cell. */
    if (row->key_size < sizeof(copy->key)) {
        memcpy(copy->key, row->key_size > 0 ? row->key : "", row->key_size);
        copy->key_size = row->key_size;
    }
    return 0;
}

/* May run more than once until it is committed, and always reads the same rows. */
static int restore_apply(struct store_task *task, struct database *database)
{
    struct restore_chunk *chunk = list_entry(task, struct restore, task)->chunk;

    chunk->n = 0;
    restore_free_copies(chunk);
    switch (chunk->stage) {
    case RESTORE_LETTERS:
        return restore_read_letters(chunk, database);
    case RESTORE_RESULTS:
        return restore_read_results(chunk, database);
    default:
        return job_rows_scan(database, chunk->after, RESTORE_JOBS_MAX, copy_row, chunk);
    }
}

/* ---- live jobs ---- */

static void next_chunk(struct restore *restore);

bool restore_is_old(const struct restore *restore, const struct group *group, int64_t number)
{
    return number < restore->chunk->end && (!group || number < group->new_from);
}

static bool has_same_cell(const struct restore_row *a, const struct restore_row *b)
{
    return strcmp(a->group, b->group) == 0 && a->key_size == b->key_size &&
           memcmp(a->key, b->key, a->key_size) == 0;
}

/* Puts the number of a job that waits into its cell's backlog: `*in_backlog`. Returns whether the
 * row is to be read. */
static bool is_to_be_read(const struct restore *restore, struct cell *cell,
                          const struct restore_row *row, bool *in_backlog)
{
    const struct job_row id = {
        .number = row->number, .name = row->name, .name_size = (uint32_t)strlen(row->name)};
    struct durable_jobs *durable = restore->context->durable;
    const struct job *job = durable_job_find(durable, &id);

    *in_backlog = false;
    if (job) /* a worker has it in hand */
        return durable_job_is_unread(job);
    if (row->name[0] != '\0')
        names_on_disk_add(&durable->names, row->name, id.name_size, row->number);
    if (!cell)
        return false;
    if (!row->waits || ended_attempts_has(&durable->attempts, row->number) ||
        cell_backlog_add_number(cell, row->priority, row->number) < 0)
        return true;
    *in_backlog = true;
    submitter_adopt_on_disk(&cell->group->submitters, row->uid, row->payload_size);
    waiting_room_keep(durable->inherited, SAVED_JOB_ROW, (uint64_t)row->number);
    return row->has_deadline;
}

bool restore_is_free_soon(const struct restore *restore, const char *name, size_t size)
{
    struct protocol_id id = {0};
    const struct job *job;

    if (size >= sizeof(id.name))
        return false;
    memcpy(id.name, name, size);
    job = job_by_id(restore->context->jobs, &id);
    return job && job->record && durable_job_may_exist(job);
}

/* Returns NULL if there is none, or if the group is closed: its jobs stay on disk. */
static struct cell *find_cell(struct group *group, const char *key, size_t size)
{
    return group && !group->closed ? group_restore_cell(group, key, size) : NULL;
}

/* Returns whether the row is to be read again. */
static bool resume_job(const struct restore *restore, const struct job_load_entry *entry)
{
    struct loaded_job *loaded = entry->job;
    const struct job_row *row = &loaded->row;
    struct group *group = find_group(restore, row->group, row->group_size);
    struct cell *cell = find_cell(group, row->key, row->key_size);
    struct job *job = durable_job_find(restore->context->durable, row);
    int r = 0;

    if (job && durable_job_is_unread(job))
        r = cell_complete_job(job->cell, job, loaded);
    else if (cell && !job && entry->mark)
        (void)cell_backlog_restore(cell, loaded, &job); /* if not now, the cell reads it later */
    else if (cell && !job)
        r = cell_resume_job(cell, loaded, NULL);
    if (r == -EEXIST && restore_is_free_soon(restore, row->name, row->name_size))
        return true;
    if (r == -ENOMEM)
        leave_out(restore);
    if (r < 0)
        log_error("%.*s: cannot take a job from disk: %s; it comes back at the next start",
                  (int)row->group_size, row->group,
                  r == -EEXIST ? "another has its id" : strerror(-r));
    return false;
}

/* The groups are not read again in this run. */
static void end_groups(const struct restore *restore)
{
    size_t cursor = 0;
    struct group *group;

    restore->context->durable->restores = false;
    while ((group = registry_next(restore->context->registry, &cursor))) {
        group->restored = group->restored || group->restores;
        group->restores = false;
    }
}

/* Hands out jobs of this run, unless older ones are still to be read. */
static void resume_groups(const struct restore *restore)
{
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(restore->context->registry, &cursor))) {
        if (group_awaits_restore(group))
            continue;
        list_for_each (node, &group->cells.live)
            cell_backlog_end_restore(list_entry(node, struct cell, live_link));
        group_review_drain(group);
        group_review_removal(group);
    }
}

/* The store does not work. */
static void stop(struct restore *restore)
{
    leave_out(restore);
    end_groups(restore);
    resume_groups(restore);
    restore_free_copies(restore->chunk);
    free(TAKE_PTR(restore->chunk));
    if (restore->done)
        restore->done(restore);
}

static void on_loaded(struct store_task *task, int result);

/* Reads the rows whose numbers have been filled in. */
static void begin_load(struct restore *restore, struct job_load *load)
{
    load->owner = restore;
    load->bytes_max = RESTORE_BYTES;
    load->task.done = on_loaded;
    store_add(restore->context->durable->store, &load->task);
}

/* Reads the first `n_again` rows of `load` again, and those that had no room in it. Returns false
 * if there are none. */
static bool load_rest(struct restore *restore, const struct job_load *load, size_t n_again)
{
    const size_t n = n_again + load->n - load->n_read;
    struct job_load *rest = n > 0 && load->n_read > 0 ? job_load_new(n) : NULL;

    if (n > 0 && !rest)
        leave_out(restore); /* out of memory */
    if (!rest)
        return false;
    for (size_t i = 0; i < n; i++) {
        const struct job_load_entry *entry =
            &load->entries[i < n_again ? i : load->n_read + i - n_again];

        rest->entries[i] = (struct job_load_entry){.number = entry->number, .mark = entry->mark};
    }
    begin_load(restore, rest);
    return true;
}

static void on_loaded(struct store_task *task, int result)
{
    struct job_load *load = job_load_of(task);
    struct restore *restore = load->owner;
    size_t n_again = 0;

    for (size_t i = 0; result == 0 && i < load->n_read; i++)
        if (load->entries[i].job && resume_job(restore, &load->entries[i])) {
            load->entries[n_again].mark = load->entries[i].mark;
            load->entries[n_again++].number = load->entries[i].number;
        }
    if (result < 0)
        stop(restore);
    else if (!load_rest(restore, load, n_again))
        next_chunk(restore);
    job_load_free(load);
}

/* Returns whether rows are being read. */
static bool load_rows(struct restore *restore)
{
    const struct restore_chunk *chunk = restore->chunk;
    struct job_load *load = job_load_new(chunk->n);
    struct group *group = NULL;
    struct cell *cell = NULL;
    size_t n = 0;

    if (!load) {
        leave_out(restore);
        return false;
    }
    for (const struct restore_row *row = chunk->rows; row < chunk->rows + chunk->n; row++) {
        if (row == chunk->rows || !has_same_cell(row, row - 1)) {
            group = restore_group_of_row(restore, row->group, strlen(row->group), row->number);
            cell = find_cell(group, row->key, row->key_size);
        }
        if (restore_is_old(restore, group, row->number) &&
            is_to_be_read(restore, cell, row, &load->entries[n].mark))
            load->entries[n++].number = row->number;
    }
    load->n = n;
    if (n == 0) {
        job_load_free(load);
        return false;
    }
    begin_load(restore, load);
    return true;
}

/* ---- the sequence ---- */

/* A group may come while others are restored, and take jobs at once. */
static void note_new_groups(const struct restore *restore)
{
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(restore->context->registry, &cursor)))
        if (group->new_from == 0)
            group->new_from = store_next_number(restore->context->durable->store);
}

static bool mark_groups(const struct restore *restore)
{
    size_t cursor = 0;
    struct group *group;
    bool any = false;

    while ((group = registry_next(restore->context->registry, &cursor))) {
        group->restores = !group->restored && !group->drained;
        any = any || group->restores;
    }
    return any;
}

/* Jobs in hand whose rows were not found: they had not been written. Their results are kept. */
static void complete_unwritten(const struct restore *restore)
{
    list_for_each_safe (node, &restore->context->durable->unread) {
        const struct durable_job *durable = list_entry(node, struct durable_job, unread_link);
        struct job *job = durable->record.job;

        durable_job_found(job, durable->ended ? cell_rest_of(job->cell, job, durable->end) : 0);
    }
}

static void report_undescribed(const struct restore *restore)
{
    size_t cursor = 0;
    struct group *group;

    while ((group = registry_next(restore->context->registry, &cursor)))
        if (group->restores && group_is_undescribed(group))
            group_report_undescribed(group);
}

static void finish(struct restore *restore)
{
    complete_unwritten(restore);
    report_undescribed(restore);
    ended_attempts_settle(&restore->context->durable->attempts);
    (void)waiting_room_settle(restore->context->durable->inherited, SAVED_JOB_ROW, NULL, NULL);
    free(TAKE_PTR(restore->chunk));
    end_groups(restore);
    restore_begin(restore); /* groups may have been added */
    resume_groups(restore);
    if (restore->done)
        restore->done(restore);
}

/* Reads the next chunk, of this stage or the next one. */
static void next_chunk(struct restore *restore)
{
    struct restore_chunk *chunk = restore->chunk;

    if (chunk->n < (chunk->stage == RESTORE_LIVE ? RESTORE_JOBS_MAX : RESTORE_RESULTS_MAX)) {
        chunk->stage++;
        chunk->after = 0;
        chunk->after_ended = 0;
    }
    if (chunk->stage == RESTORE_DONE)
        finish(restore);
    else
        store_add(restore->context->durable->store, &restore->task);
}

static void restore_done(struct store_task *task, int result)
{
    struct restore *restore = list_entry(task, struct restore, task);
    struct restore_chunk *chunk = restore->chunk;
    const int fault = fault_inject("restore");

    if (fault == -EAGAIN) { /* as if the transaction had failed */
        store_add(restore->context->durable->store, task);
        return;
    }
    if (result < 0 || fault < 0) {
        stop(restore);
        return;
    }
    switch (chunk->stage) {
    case RESTORE_LETTERS:
        restore_take_letters(restore);
        break;
    case RESTORE_RESULTS:
        if (restore_take_results(restore)) {
            store_add(restore->context->durable->store, &restore->task);
            return;
        }
        break;
    default:
        if (chunk->n > 0)
            chunk->after = chunk->rows[chunk->n - 1].number;
        if (load_rows(restore))
            return;
    }
    next_chunk(restore);
}

void restore_init(struct restore *restore, const struct group_context *context)
{
    *restore = (struct restore){.context = context,
                                .task = {.apply = restore_apply, .done = restore_done}};
    list_init(&restore->task.link);
}

void restore_begin(struct restore *restore)
{
    struct store *store = restore->context->durable->store;

    note_new_groups(restore);
    if (restore->chunk || (!mark_groups(restore) && restore->scanned))
        return;
    restore->chunk = calloc(1, sizeof(*restore->chunk));
    if (!restore->chunk) {
        log_error("out of memory: durable jobs stay on disk until the next start");
        leave_out(restore);
        end_groups(restore);
        resume_groups(restore);
        return;
    }
    list_init(&restore->chunk->copies);
    restore->scanned = true;
    restore->chunk->end = store_next_number(store);
    restore->chunk->stage =
        restore->context->durable->letters_unread ? RESTORE_LETTERS : RESTORE_RESULTS;
    restore->context->durable->restores = true;
    store_add(store, &restore->task);
}

void restore_again(struct restore *restore)
{
    restore->scanned = false;
    restore_begin(restore);
}

void restore_deinit(struct restore *restore)
{
    free(TAKE_PTR(restore->chunk));
}

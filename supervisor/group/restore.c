/* SPDX-License-Identifier: MIT */
#include "supervisor/group/restore.h"

#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/group/cell/cell-backlog.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/restore-private.h"
#include "supervisor/group/undescribed.h"
#include "supervisor/job/job-ties.h"
#include "supervisor/message/message-save.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-to-row.h"
#include <errno.h>
#include <string.h>

/* How many rows are read at a time. Each read waits for the commit of concurrent writes, so a
 * million jobs need large reads. Results are kept when they are read, so fewer at a time. */
#define ROWS_MAX    8192
#define RESULTS_MAX 256

/* How many rows are taken at a time, twice in a turn: a job may have many ties. */
#define TAKEN_MAX 256

/* How many bytes of payloads are read at a time. */
#define RESTORE_BYTES (UINT64_C(16) << 20)
/* Pause when memory is short. */
#define RESTORE_RETRY USEC_PER_SEC

/* Returns the group, if it is being restored. */
static struct group *find_group(const struct restore *restore, const char *name, size_t size)
{
    struct group *group = registry_find_text(restore->context->registry, name, size);

    return group && group->rows == GROUP_BEING_READ ? group : NULL;
}

/* Rows that are left out come back at the next start. */
static void leave_out(const struct restore *restore)
{
    restore->context->durable->incomplete = true;
}

struct group *restore_group_of_row(const struct restore *restore, const struct job_row *row)
{
    struct registry *registry = restore->context->registry;
    struct group *group;
    int r;

    if (registry->stopping || row->number >= restore->end ||
        registry_find_text(registry, row->group, row->group_size))
        return find_group(restore, row->group, row->group_size);
    r = group_new_undescribed(&group, restore->context, row->group, row->group_size);
    if (r == -ENOMEM)
        leave_out(restore);
    if (r < 0) {
        log_error("%.*s: no file describes it, and its jobs on disk cannot be listed: %s",
                  (int)row->group_size, row->group, strerror(-r));
        return NULL;
    }
    group->new_from = restore->end;
    group->rows = GROUP_BEING_READ;
    return group;
}

/* ---- live jobs ---- */

bool restore_is_old(const struct restore *restore, const struct group *group, int64_t number)
{
    return number < restore->end && (!group || number < group->new_from);
}

static bool has_same_cell(const struct job_row *a, const struct job_row *b)
{
    return strcmp(a->group, b->group) == 0 && a->key_size == b->key_size &&
           memcmp(a->key, b->key, a->key_size) == 0;
}

static bool waits_for_others(const struct restore *restore, const struct job_row *row)
{
    struct tie_list list;

    return row->batch != BATCH_NONE ||
           (row->ties_size > 0 && (tie_list_read(&list, row->ties, row->ties_size) < 0 ||
                                   !ties_hold(restore->context->jobs, &list)));
}

/* Leaves a job that waits on disk. Returns false if it is to be read. */
static bool leave_on_disk(const struct restore *restore, struct cell *cell,
                          const struct job_row *row)
{
    struct durable_jobs *durable = restore->context->durable;
    struct saved_reader saved;

    if (row->cause != PROTOCOL_CAUSE_NONE || waits_for_others(restore, row) ||
        ended_attempts_has(&durable->attempts, row->number))
        return false;
    if (row->state == JOB_ROW_DELAYED) /* an upgrade may know better than the row */
        return row->deadline == 0 &&
               !waiting_room_find(durable->inherited, SAVED_JOB_ROW, (uint64_t)row->number,
                                  &saved) &&
               cell_later_add_row(cell, row);
    return row->state == JOB_ROW_WAITING &&
           cell_backlog_add_number(cell, row->priority, row->number) == 0;
}

/* Leaves the number of a job that waits with its cell: `*on_disk`. Returns whether the row is to be
 * read. */
static bool is_to_be_read(const struct restore *restore, struct cell *cell,
                          const struct job_row *row, bool *on_disk)
{
    struct durable_jobs *durable = restore->context->durable;
    const struct job *job = durable_job_find(durable, row);

    *on_disk = false;
    ties_found(restore->context->jobs, row->number); /* it is live, though it may stay on disk */
    if (job)                                         /* a worker has it in hand */
        return durable_job_is_unread(job);
    if (row->name_size > 0)
        names_on_disk_add(&durable->names, row->name, row->name_size, row->number);
    if (!cell)
        return false;
    if (row->unique_low != 0 && row->cause == PROTOCOL_CAUSE_NONE &&
        !cell_has_released_key(cell, row))
        names_on_disk_add(&durable->unique, &(struct unique_id){row->unique_high, row->unique_low},
                          sizeof(struct unique_id), row->number);
    *on_disk = leave_on_disk(restore, cell, row);
    if (!*on_disk)
        return true;
    submitter_adopt_on_disk(&cell->submitters, row->facts.submitter_uid, row->payload_size);
    waiting_room_keep(durable->inherited, SAVED_JOB_ROW, (uint64_t)row->number);
    return row->deadline != 0; /* its job stays in memory until then */
}

bool restore_is_free_soon(const struct restore *restore, const struct job_row *row)
{
    struct protocol_id id = {0};
    const struct job *job;

    if (row->name_size == 0 || row->name_size >= sizeof(id.name))
        return false;
    memcpy(id.name, row->name, row->name_size);
    job = job_by_id(restore->context->jobs, &id);
    return job && job->record && durable_job_may_exist(job);
}

/* Returns NULL if there is none, or if the group is closed: its jobs stay on disk. */
static struct cell *find_cell(struct group *group, const char *key, size_t size)
{
    return group && !group->closed ? group_restore_cell(group, key, size) : NULL;
}

/* Whether the cell of the row could not be made for lack of memory. */
static bool lacks_cell(const struct group *group, const struct cell *cell,
                       const struct job_row *row)
{
    return group && !group->closed && !cell && protocol_name_valid(row->key, row->key_size);
}

/* Returns 0, RESTORE_E_AGAIN or -ENOMEM: the row is to be read again. */
static int resume_job(const struct restore *restore, const struct job_load_entry *entry)
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
    else if (!job && lacks_cell(group, cell, row))
        r = -ENOMEM;
    if (r == CELL_E_EXISTS && restore_is_free_soon(restore, row))
        return RESTORE_E_AGAIN;
    if (r == -ENOMEM)
        return r;
    if (r != 0)
        log_error("%.*s: cannot take a job from disk: another has its id; it comes back at the "
                  "next start",
                  (int)row->group_size, row->group);
    return 0;
}

/* Marks the groups as read: they are not read again in this run. */
static void end_groups(const struct restore *restore)
{
    restore->context->durable->restores = false;
    restore->context->durable->known = true;
    registry_each_group (group, restore->context->registry) {
        if (group->rows != GROUP_BEING_READ)
            continue;
        group->rows = GROUP_READ;
        group->reads_again = false;
        if (group_is_undescribed(group))
            group_report_undescribed(group);
    }
}

/* Hands out jobs of this run, unless older ones are still to be read. */
static void resume_groups(const struct restore *restore)
{
    registry_each_group (group, restore->context->registry) {
        if (group_awaits_restore(group))
            continue;
        list_for_each_entry (cell, &group->cells.live, struct cell, live_link)
            cell_backlog_end_restore(cell);
        group_review_drain(group);
        group_review_removal(group);
    }
}

/* Completes jobs in hand whose rows were not found, because they had not been written. Their
 * results are kept. */
static void complete_unwritten(const struct restore *restore, bool ended_only)
{
    struct list *unread = &restore->context->durable->unread;

    list_for_each_entry_safe (durable, unread, struct durable_job, unread_link) {
        struct job *job = durable->record.job;

        if (durable->ended || !ended_only)
            durable_job_found(job, durable->ended ? cell_rest_of(job->cell, job, durable->end) : 0);
    }
}

/* Returns how far the `n` entries are taken now. */
static size_t end_of_part(const struct restore *restore, size_t n)
{
    return n - restore->taken < TAKEN_MAX ? n : restore->taken + TAKEN_MAX;
}

static void take_job(struct restore *restore)
{
    struct job_load *load = restore->load;
    const size_t i = restore->taken++;
    struct job_load_entry *entry = &load->entries[i];
    const int r = i >= load->n_read ? RESTORE_E_AGAIN : entry->job ? resume_job(restore, entry) : 0;

    entry->job = loaded_job_free(entry->job);
    restore->is_short = restore->is_short || r < 0;
    if (r != 0)
        load->entries[restore->n_again++] = *entry;
}

/* Takes the live jobs that were read with their payloads. Returns 0, RESTORE_E_MORE; or
 * RESTORE_E_AGAIN or -ENOMEM: the others, to which it reduces the load, are to be read again. */
static int take_jobs(struct restore *restore)
{
    struct job_load *load = restore->load;
    const size_t end = end_of_part(restore, load->n);

    while (restore->taken < end)
        take_job(restore);
    if (end < load->n)
        return RESTORE_E_MORE;
    load->n = restore->n_again;
    if (load->n == 0)
        return 0;
    return restore->is_short || load->n_read == 0 ? -ENOMEM : RESTORE_E_AGAIN;
}

/* The group now has Cells=by-key: leaves jobs without a key on disk. */
static void leave_without_cell(const struct restore *restore, const struct group *group)
{
    limited_log_write(restore->context->log, group->name, LOG_LEVEL_ERROR,
                      "%s: a job on disk has no key that can name a cell (Cells=by-key); it stays "
                      "there until a start without cells",
                      group->name);
    leave_out(restore);
}

/* Whether another reading concerns the cell: the present one, or once it is over, that of cells
 * which have left their jobs on disk when the group was removed. */
static bool is_of_other_reading(const struct group *group, const struct cell *cell)
{
    const bool left = cell && cell->left_at == group->n_returns;

    return cell && (group->reads_again ? !left : left && group->back_from > 0);
}

/* Takes the rows of live jobs. Returns 0, RESTORE_E_MORE, or RESTORE_E_AGAIN: it has reduced the
 * load to those that are to be read with their payloads. */
static int take_rows(struct restore *restore)
{
    struct job_load *load = restore->load;
    const size_t end = end_of_part(restore, load->n_read);
    struct loaded_job *before = NULL;
    struct group *group = NULL;
    struct cell *cell = NULL;

    for (; restore->taken < end; restore->taken++) {
        struct loaded_job *loaded = TAKE_PTR(load->entries[restore->taken].job);
        const struct job_row *row = &loaded->row;
        struct job_load_entry *again = &load->entries[restore->n_again];

        if (!before || !has_same_cell(row, &before->row)) {
            group = restore_group_of_row(restore, row);
            cell = find_cell(group, row->key, row->key_size);
            if (is_of_other_reading(group, cell)) {
                group = NULL;
                cell = NULL;
            }
        }
        if (group && !group->closed && !cell && !lacks_cell(group, cell, row))
            leave_without_cell(restore, group);
        restore->leaves = restore->leaves || (group && group->closed);
        if (restore_is_old(restore, group, row->number) &&
            (is_to_be_read(restore, cell, row, &again->mark) || lacks_cell(group, cell, row))) {
            again->number = row->number;
            restore->n_again++;
        }
        restore->after = row->number;
        (void)loaded_job_free(before);
        before = loaded;
    }
    (void)loaded_job_free(before);
    if (end < load->n_read)
        return RESTORE_E_MORE;
    if (restore->n_again == 0)
        return 0;
    load->kind = LOAD_NUMBERS;
    load->n = restore->n_again;
    return RESTORE_E_AGAIN;
}

/* ---- the sequence ---- */

/* A group may come while others are restored, and take jobs immediately. */
static void note_new_groups(const struct restore *restore)
{
    registry_each_group (group, restore->context->registry)
        if (group->new_from == 0)
            group->new_from = store_next_number(restore->context->durable->store);
}

static void mark(struct group *group)
{
    group->reads_again = group->rows == GROUP_READ;
    if (group->reads_again)
        group->new_from = group->back_from;
    group->back_from = 0;
    group->rows = GROUP_BEING_READ;
}

static bool mark_groups(const struct restore *restore)
{
    bool any = false;

    registry_each_group (group, restore->context->registry) {
        if (group->removal != GROUP_OVER &&
            (group->rows == GROUP_UNREAD || (group->rows == GROUP_READ && group->back_from > 0)))
            mark(group);
        any = any || group->rows == GROUP_BEING_READ;
    }
    return any;
}

/* Forgets what the last supervisor knew of jobs that do not exist any more. */
static void forget_others(const struct restore *restore)
{
    if (restore->leaves)
        return;
    ended_attempts_settle(&restore->context->durable->attempts);
    (void)waiting_room_settle(restore->context->durable->inherited, SAVED_JOB_ROW, NULL, NULL);
}

static void finish(struct restore *restore)
{
    complete_unwritten(restore, false);
    restore_settle_ties(restore);
    forget_others(restore);
    restore->load = job_load_free(restore->load);
    restore->stage = RESTORE_NOTHING;
    end_groups(restore);
    restore_begin(restore); /* groups may have been added */
    durable_jobs_ask(restore->context->durable);
    resume_groups(restore);
    if (restore->done)
        restore->done(restore);
}

/* Takes rows of the other stages. Returns 0, RESTORE_E_MORE, or what `take` has returned. */
static int take_each(struct restore *restore,
                     int (*take)(struct restore *restore, struct loaded_job *row))
{
    const struct job_load *load = restore->load;
    const size_t end = end_of_part(restore, load->n_read);

    for (; restore->taken < end; restore->taken++) {
        struct loaded_job *loaded = load->entries[restore->taken].job;
        int r = take(restore, loaded);

        if (r != 0)
            return r;
        restore->after = loaded->row.number;
        if (load->kind == LOAD_LETTERS)
            restore->after_key = (int64_t)loaded->row.letter;
        else if (load->kind == LOAD_RESULTS)
            restore->after_key = (int64_t)loaded->row.ended_at;
    }
    return end < load->n_read ? RESTORE_E_MORE : 0;
}

static int take_letters(struct restore *restore)
{
    int r = take_each(restore, restore_take_letter);

    if (r != 0 || restore->load->more)
        return r;
    (void)waiting_room_settle(restore->context->durable->inherited, DEAD_LETTER_ROW, NULL, NULL);
    restore->context->durable->letters_unread = false;
    return 0;
}

static void on_read(struct store_task *task, int result);

/* Stops reading, because the store does not work or is closed. */
static void stop(struct restore *restore, int error)
{
    leave_out(restore);
    restore->context->durable->unreadable = true;
    complete_unwritten(restore, true);
    end_groups(restore);
    if (error != -ECANCELED)
        durable_jobs_ask(restore->context->durable);
    resume_groups(restore);
    restore->load = job_load_free(restore->load);
    restore->stage = RESTORE_NOTHING;
    if (restore->done)
        restore->done(restore);
}

static struct job_load *make_load(struct restore *restore)
{
    struct job_load *load = job_load_new(ROWS_MAX);

    if (!load)
        return NULL;
    load->kind = LOAD_JOBS;
    load->owner = restore;
    load->bytes_max = RESTORE_BYTES;
    load->task.done = on_read;
    restore->load = load;
    return load;
}

static void read_later(struct restore *restore);

/* Reads the jobs of the load, or the next rows of the stage. */
static void read_next(struct restore *restore)
{
    static const enum job_load_kind kinds[] = {
        [RESTORE_TIES] = LOAD_TIES,
        [RESTORE_LETTERS] = LOAD_LETTERS,
        [RESTORE_RESULTS] = LOAD_RESULTS,
        [RESTORE_LIVE] = LOAD_JOBS,
    };
    struct job_load *load = restore->load ? restore->load : make_load(restore);

    if (!load) {
        read_later(restore);
        return;
    }
    if (load->kind != LOAD_NUMBERS) {
        load->kind = kinds[restore->stage];
        load->n = load->kind == LOAD_RESULTS ? RESULTS_MAX : ROWS_MAX;
        load->after = restore->after;
        load->after_key = restore->after_key;
    }
    store_add(restore->context->durable->store, &load->task);
}

static void on_retry(struct timer *timer, usec_t now)
{
    read_next(list_entry(timer, struct restore, retry));
}

/* Continues after RESTORE_RETRY, because memory is short. */
static void read_later(struct restore *restore)
{
    struct loop *loop = restore->context->loop;
    const usec_t at = usec_add(loop_now(loop), RESTORE_RETRY);

    timer_arm(loop_timers(loop), &restore->retry, at);
}

static enum restore_stage first_stage(const struct restore *restore)
{
    if (!restore->ties_read)
        return RESTORE_TIES;
    return restore->context->durable->letters_unread ? RESTORE_LETTERS : RESTORE_RESULTS;
}

static void begin_stage(struct restore *restore, enum restore_stage stage)
{
    restore->stage = stage;
    restore->after = 0;
    restore->after_key = stage == RESTORE_TIES ? ROWS_TIED : INT64_MIN;
}

static void begin_next_stage(struct restore *restore)
{
    if (restore->stage == RESTORE_TIES && restore->after_key + 1 < _ROWS_N_TIES) {
        restore->after_key++;
        restore->after = 0;
    } else if (restore->stage == RESTORE_TIES) {
        restore->ties_read = true;
        begin_stage(restore, first_stage(restore));
    } else {
        begin_stage(restore, restore->stage + 1);
    }
}

/* Begins to read the next rows, of this stage or the next one. */
static void read_on(struct restore *restore)
{
    if (!restore->load->more)
        begin_next_stage(restore);
    if (restore->stage == RESTORE_DONE) {
        finish(restore);
        return;
    }
    restore->load->kind = LOAD_JOBS;
    read_next(restore);
}

/* Returns 0; RESTORE_E_MORE; or RESTORE_E_AGAIN or -ENOMEM: the rest is to be read again. */
static int take(struct restore *restore)
{
    switch (restore->load->kind) {
    case LOAD_TIES:
        return take_each(restore, restore_take_ties);
    case LOAD_LETTERS:
        return take_letters(restore);
    case LOAD_RESULTS:
        return take_each(restore, restore_take_result);
    case LOAD_JOBS:
        return take_rows(restore);
    default:
        return take_jobs(restore);
    }
}

/* Continues after a part of the load was taken, or could not be. */
static void go_on(struct restore *restore, int r)
{
    restore->context->durable->takes = r == RESTORE_E_MORE;
    if (r == 0)
        read_on(restore);
    else if (r == RESTORE_E_MORE)
        loop_defer(restore->context->loop, &restore->more);
    else if (r == -EAGAIN || r == RESTORE_E_AGAIN) /* -EAGAIN: as if the transaction had failed */
        read_next(restore);
    else if (r == -ENOMEM)
        read_later(restore);
    else
        stop(restore, r);
}

static void on_more(struct loop_deferred *deferred)
{
    struct restore *restore = list_entry(deferred, struct restore, more);

    FAULT_POINT("restore.part");
    go_on(restore, take(restore));
}

static void on_read(struct store_task *task, int result)
{
    struct restore *restore = job_load_of(task)->owner;
    const int fault = fault_inject("restore");
    int r = result < 0 ? result : fault;

    restore->taken = restore->n_again = 0;
    restore->is_short = false;
    go_on(restore, r == 0 ? take(restore) : r);
}

void restore_init(struct restore *restore, const struct group_context *context)
{
    *restore = (struct restore){.context = context};
    timer_init(&restore->retry, on_retry);
    loop_deferred_init(&restore->more, on_more);
}

void restore_begin(struct restore *restore)
{
    struct durable_jobs *durable = restore->context->durable;

    note_new_groups(restore);
    if (restore->stage != RESTORE_NOTHING || (!mark_groups(restore) && restore->scanned))
        return;
    restore->scanned = true;
    restore->leaves = false;
    restore->end = store_next_number(durable->store);
    durable->restores = true;
    begin_stage(restore, first_stage(restore));
    read_next(restore);
}

void restore_again(struct restore *restore)
{
    restore->scanned = false;
    restore_begin(restore);
}

void restore_deinit(struct restore *restore)
{
    if (!restore->context)
        return;
    timer_disarm(loop_timers(restore->context->loop), &restore->retry);
    loop_undefer(&restore->more);
    restore->load = job_load_free(restore->load);
}

/* SPDX-License-Identifier: MIT */

/* Restores dead letters and kept results. Before any job is read, counts what jobs are tied to. */

#include "shared/base/clock.h"
#include "shared/base/log.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/cell/cell-ties.h"
#include "supervisor/group/group-context.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/restore-private.h"
#include "supervisor/job/job.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/message-save.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-number.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/store/removal.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- ties: see job/job-ties.h ---- */

int restore_take_ties(struct restore *restore, struct loaded_job *loaded)
{
    struct job_table *jobs = restore->context->jobs;
    const struct job_row *row = &loaded->row;
    struct tie_list list;

    if (row->number >= restore->end) /* of this run */
        return 0;
    if (restore->after_key == ROWS_TIED && tie_list_read(&list, row->ties, row->ties_size) == 0)
        return ties_expect(jobs, &list);
    if (restore->after_key == ROWS_TIED)
        log_error("what durable job %" PRId64 " waits for cannot be read: its row is damaged",
                  row->number);
    else if (!job_state_is_end(row->state) || !ties_expect_end(jobs, row->number, row->state))
        removal_add(restore->context->durable->store, row->number, ROWS_FATE);
    return 0;
}

void restore_settle_ties(const struct restore *restore)
{
    const size_t n = ties_settle(restore->context->jobs, true);

    if (n > 0)
        log_error("%zu durable jobs, for which others wait, are unknown: they count as cancelled",
                  n);
}

/* ---- dead letters ---- */

/* Returns the id that the letter had, or 0 if another one may have it now. */
static uint64_t id_of_letter(const struct dead_letters *letters, uint64_t id)
{
    const bool inherited = id <= letters->inherited_id && !dead_letter_find(letters, id);

    return dead_letter_id_valid(id) && (id > letters->tally->last_id || inherited) ? id : 0;
}

/* Writes the id of its job into `text` of PROTOCOL_ID_TEXT bytes, unless the row has it. */
static const char *job_of_letter(const struct restore *restore, const struct job_row *row,
                                 char *text)
{
    struct protocol_id made;

    if (row->name_size > 0)
        return row->name;
    made = job_number_to_id(store_id_key(restore->context->durable->store), row->number);
    return protocol_id_format(&made, text);
}

int restore_take_letter(struct restore *restore, struct loaded_job *copy)
{
    struct dead_letters *letters = &restore->context->messages->dead_letters;
    const struct job_row *row = &copy->row;
    const bool keyed = row->key_size > 0 && protocol_name_valid(row->key, row->key_size);
    char recipient[CONFIG_GROUP_NAME_MAX + PROTOCOL_NAME_MAX + 2], id[PROTOCOL_ID_TEXT];
    const struct group *group = registry_find(restore->context->registry, row->group);
    struct dead_letter letter = {
        .reason = DEAD_JOB,
        .id = row->letter,
        .row = row->number,
        .at = row->ended_at,
        .recipient = recipient,
        .topic = {.type = "",
                  .key = row->key_size > 0 ? row->key : NULL,
                  .key_size = row->key_size},
        .sent_at = row->created_at,
        .job = job_of_letter(restore, row, id),
        .submitter_uid = row->submitter_uid,
        .code = row->code,
        .options = row->asked,
        .unique_high = row->unique_high,
        .unique_low = row->unique_low,
        .tags = row->tags_size > 0 ? row->tags : NULL,
        .traceparent = row->traceparent_size > 0 ? row->traceparent : NULL,
        .text = row->reason_size > 0 ? row->reason : NULL,
        .attempts = row->n_failed,
        .cause = row->failed_by,
        .payload_dropped = row->payload_dropped,
    };

    if (dead_letter_claim(letters, restore->context->deaths, restore->context->durable->inherited,
                          &letter, &copy->payload))
        return 0;
    letter.id = id_of_letter(letters, row->letter);
    (void)snprintf(recipient, sizeof(recipient), "%s%s%s", row->group,
                   group && group_is_keyed(group) && keyed ? "/" : "",
                   group && group_is_keyed(group) && keyed ? row->key : "");
    if (!dead_letter_id_valid(row->letter))
        log_warning("dead letter in row %" PRId64 " has the invalid id %" PRIu64
                    "; assigning a new one",
                    row->number, row->letter);
    (void)dead_letter_restore(letters, &letter, &copy->payload);
    return 0;
}

/* ---- kept results ---- */

/* Returns 0, -ENOMEM or -EMSGSIZE. */
static int fill_result(struct group *group, struct job *job, const struct job_row *row,
                       struct payload *result)
{
    int r;

    job->facts = row->facts;
    job->state = (uint8_t)row->state;
    job->group = group;
    job->keep_result = true;
    job->payload_lost = false;
    if (row->reason_size > 0)
        job->reason = strndup(row->reason, row->reason_size);
    ties_recall(job, row->ties, row->ties_size);
    r = job_set_key(job, row->key, row->key_size);
    if (r == 0)
        r = job_set_tags(job, row->tags, row->tags_size);
    if (r == 0)
        r = job_set_traceparent(job, row->traceparent, row->traceparent_size);
    if (r < 0)
        return r;
    payload_move(&job->result, result);
    return 0;
}

static void keep_result(struct group *group, struct job *job)
{
    struct loop *loop = group->context->loop;
    const usec_t age = usec_sub(loop_realtime(loop), job->ended_at);

    (void)ties_claim(group->context->jobs, job, cell_tie_key(job));
    kept_results_restore(&group->results, job, usec_sub(loop_now(loop), age));
}

int restore_saved_result(struct group *group, struct job *job, const struct saved_job *saved,
                         struct payload *result)
{
    struct job_row row = saved->row;
    int r;

    row.state = saved->end;
    r = fill_result(group, job, &row, result);
    if (r < 0) {
        job_let_go(group->context->jobs, job);
        return r;
    }
    job_restore_attempts(job, saved->attempts, saved->n_attempts);
    keep_result(group, job);
    return 0;
}

static int fill_durable_result(struct group *group, struct job *job, struct loaded_job *copy)
{
    struct durable_jobs *durable = group->context->durable;
    const int64_t number = copy->row.number;
    int r = fill_result(group, job, &copy->row, &copy->payload);

    if (r < 0)
        return r;
    cell_give_attempts(durable, job, number);
    return durable_job_take_result(durable, job, group->name, number);
}

int restore_take_result(struct restore *restore, struct loaded_job *copy)
{
    const struct group_context *context = restore->context;
    const struct job_row *row = &copy->row;
    struct group *group = restore_group_of_row(restore, row);
    struct job *job;
    int r;

    if (!group && row->name_size > 0)
        names_on_disk_add(&context->durable->names, row->name, row->name_size, row->number);
    if (!group || group->reads_again || !restore_is_old(restore, group, row->number) ||
        !job_state_is_end(row->state))
        return 0;
    r = job_new(context->jobs, row->name, &job);
    if (r == JOB_E_EXISTS)
        return restore_is_free_soon(restore, row) ? RESTORE_E_AGAIN : 0;
    if (r < 0)
        return r;
    r = fill_durable_result(group, job, copy);
    if (r == 0)
        keep_result(group, job);
    else
        job_let_go(context->jobs, job);
    return r == -ENOMEM ? r : 0;
}

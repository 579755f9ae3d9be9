/* SPDX-License-Identifier: MIT */
/* Reports jobs that are dead: in the log, in the group's status and as dead letters. */

#include "supervisor/event/death.h"
#include "supervisor/event/event-id.h"
#include "supervisor/group/cell/cell-durable.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/message/message-context.h"
#include <stdio.h>
#include <string.h>

static void cell_note_dead(struct cell *cell, const struct job *job)
{
    struct group_dead *dead = &cell->group->last_dead;

    job_get_id(job, &dead->id);
    dead->at = job->ended_at;
    (void)snprintf(dead->reason, sizeof(dead->reason), "%s", job->reason ? job->reason : "");
}

/* Finds the last reports of workers that had the job in hand, oldest first. Returns their number.
 */
static size_t find_deaths(const struct death_log *log, const struct job *job,
                          struct death *ret[DEAD_LETTER_DEATHS_MAX])
{
    struct death *found[DEAD_LETTER_DEATHS_MAX];
    char id[PROTOCOL_ID_TEXT];
    size_t wanted = 0, n = 0, n_searched = 0;

    for (size_t i = 0; i < job->n_attempts && wanted < DEAD_LETTER_DEATHS_MAX; i++)
        wanted += strcmp(job->attempts[i].cause, "retry") != 0;
    job_format_id(job, id);
    list_for_each (node, &log->deaths) {
        struct death *death = list_entry(node, struct death, link);

        if (n == wanted || n_searched++ == DEATHS_SEARCHED)
            break;
        if (strcmp(death->job, id) == 0)
            found[n++] = death;
    }
    for (size_t i = 0; i < n; i++)
        ret[i] = found[n - 1 - i];
    return n;
}

static void cell_write_dead_letter(struct cell *cell, struct job *job)
{
    const struct group_context *context = cell->context;
    struct payload payload = PAYLOAD_NULL;
    char id[PROTOCOL_ID_TEXT];
    struct dead_letter letter = {
        .reason = DEAD_JOB,
        .id = job->record ? durable_of(job)->letter : 0,
        .row = job->record ? durable_of(job)->row.number : 0,
        .at = job->ended_at,
        .recipient = cell->name,
        .topic = {.type = "", .key = job->key, .key_size = job->key_size},
        .sent_at = job->created_at,
        .job = job_format_id(job, id),
        .submitter_uid = job->submitter_uid,
        .code = job->code,
        .options = job_asked(job),
        .text = job->reason,
        .attempts = job->n_failed,
        .cause = job->failed_by,
    };

    letter.n_deaths = find_deaths(context->deaths, job, letter.deaths);
    job_count(&cell->counts, JOBS_BYTES, -(int64_t)job->payload.size);
    payload_move(&payload, &job->payload);
    (void)dead_letter_add(&context->messages->dead_letters, &letter, &payload);
}

static void cell_tell_dead(struct cell *cell, const struct job *job)
{
    char id[PROTOCOL_ID_TEXT];
    const struct event event = {
        .level = LOG_LEVEL_ERROR,
        .type = "job.dead",
        .job = job_format_id(job, id),
        .message_id = EVENT_ID_JOB_DEAD,
        .quotes = true,
    };

    pool_tell(&cell->pool, event, "job %s is dead after %u attempt%s; the last: %s", id,
              job->n_failed, job->n_failed == 1 ? "" : "s", job->reason ? job->reason : "");
}

void cell_report_dead(struct cell *cell, struct job *job)
{
    cell_note_dead(cell, job);
    cell_tell_dead(cell, job);
    if (!cell_is_restored(job))
        cell_write_dead_letter(cell, job);
}

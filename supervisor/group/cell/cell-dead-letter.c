/* SPDX-License-Identifier: MIT */
/* Keeps a dead job as a dead letter. */

#include "supervisor/event/death.h"
#include "supervisor/group/cell/cell-private.h"
#include "supervisor/group/group.h"
#include "supervisor/message/message-context.h"
#include <string.h>

/* How many of the remembered attempts ended in a death. */
static size_t count_deaths(const struct job *job)
{
    size_t n = 0;

    for (size_t i = 0; i < job->n_attempts; i++)
        n += strcmp(job->attempts[i].cause, "retry") != 0;
    return n;
}

/* The last reports of workers that had the job in hand, oldest first. Their number. */
static size_t find_deaths(const struct death_log *log, const struct job *job,
                          struct death *ret[DEAD_LETTER_DEATHS_MAX])
{
    struct death *found[DEAD_LETTER_DEATHS_MAX];
    char id[PROTOCOL_ID_TEXT];
    size_t wanted = count_deaths(job), n = 0, n_searched = 0;

    if (wanted > DEAD_LETTER_DEATHS_MAX)
        wanted = DEAD_LETTER_DEATHS_MAX;
    protocol_id_format(&job->id, id);
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

void cell_write_dead_letter(struct cell *cell, struct job *job)
{
    const struct group_context *context = cell->context;
    struct death *deaths[DEAD_LETTER_DEATHS_MAX];
    struct payload payload = PAYLOAD_NULL;
    char id[PROTOCOL_ID_TEXT];
    const struct dead_letter_facts facts = {
        .reason = DEAD_JOB,
        .recipient = cell->name,
        .topic = {.type = "", .key = job->key, .key_size = job->key_size},
        .sent_at = job->created_at,
        .job = protocol_id_format(&job->id, id),
        .submitter_uid = job->submitter_uid,
        .code = job->code,
        .options = job->asked,
        .text = job->reason,
        .attempts = job->n_failed,
        .deaths = deaths,
        .n_deaths = find_deaths(context->deaths, job, deaths),
    };

    payload_move(&payload, &job->payload);
    (void)dead_letter_add(&context->messages->dead_letters, &facts, &payload);
}

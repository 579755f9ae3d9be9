/* SPDX-License-Identifier: MIT */
/* Makes and publishes reports of deaths. */

#include "supervisor/event/death.h"
#include "supervisor/event/event-id.h"
#include "supervisor/job/job.h"
#include "supervisor/pool/slot/slot-private.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void slot_report_state(struct slot *slot, struct death *death)
{
    uint8_t page[MEMORY_STATE_MAX];
    size_t size = 0;

    if (!slot->worker.endpoint_open)
        return;
    /* The page may be torn if death interrupted a write. */
    (void)memory_state_read(&slot->worker.endpoint.channel.theirs, page, &size);
    if (size == 0)
        return;
    death->state = malloc(size);
    if (!death->state)
        return;
    memcpy(death->state, page, size);
    death->state_size = size;
}

static void slot_report_job(const struct slot *slot, struct death *death)
{
    struct list *node = list_first(&slot->jobs);
    const struct job *job;

    if (!node)
        return;
    job = list_entry(node, struct job, link);
    if (!job->started && slot->worker.kill_reason != DEATH_JOB_TIMEOUT)
        return; /* not begun, so it is not the cause */
    protocol_id_format(&job->id, death->job);
    death->attempt = job->attempt;
    death->submitter_uid = job->submitter_uid;
    death->state_of_job = slot_has_published(slot, job);
}

/* Adds the output since the job in hand began, or since the worker started. */
static void slot_report_output(const struct slot *slot, struct death *death)
{
    char output[CAPTURE_TAIL_MAX + 1];
    size_t since = death->job[0] != '\0' ? slot->worker.output_mark : 0;
    size_t size = process_last_output(&slot->worker.process, since, output, sizeof(output));

    death->stderr_size = size;
    death->stderr_text = size > 0 ? malloc(size) : NULL;
    if (death->stderr_text)
        memcpy(death->stderr_text, output, size);
}

struct death *slot_new_report(struct slot *slot)
{
    struct death *death = death_new();

    if (!death)
        return NULL;
    (void)snprintf(death->worker, sizeof(death->worker), "%s", slot->name);
    death->owner_uid = slot->pool->config->user ? slot->pool->config->uid : 0;
    death->generation = slot->generation;
    death->at = clock_realtime();
    death->jobs_done = slot->worker.jobs_done;
    slot_report_state(slot, death);
    slot_report_job(slot, death);
    slot_report_output(slot, death);
    return death;
}

static struct event death_event(const struct death *death)
{
    if (death->command[0] != '\0')
        return (struct event){.level = LOG_LEVEL_WARNING,
                              .type = "command.died",
                              .message_id = EVENT_ID_COMMAND_DIED};
    if (death->cause == DEATH_STOP)
        return (struct event){.level = LOG_LEVEL_INFO, .type = "worker.died"};
    return (struct event){.level = LOG_LEVEL_WARNING,
                          .type = "worker.died",
                          .message_id = death->cause == DEATH_VIOLATION ? EVENT_ID_VIOLATION
                                                                        : EVENT_ID_WORKER_DIED};
}

static void slot_tell_death(struct slot *slot, struct death *death)
{
    const bool command = death->command[0] != '\0';
    struct event event = death_event(death);

    event.job = death->job[0] ? death->job : NULL;
    event.quotes = command;
    event.death = death;
    slot_tell(slot, event, "%s%s%s%s%s%s%s", command ? "ran '" : "", death->command,
              command ? "', which " : "", death->cause == DEATH_STOP ? "" : "died: ", death->detail,
              death->job[0] ? ", in hand: job " : "", death->job);
}

void slot_publish_report(struct slot *slot, struct death *death)
{
    bool expected = death->cause == DEATH_STOP;
    /* The report of a predecessor, which is about to be freed, goes to the member. */
    struct slot *place =
        slot->role == SLOT_PREDECESSOR && !expected ? slot->pool->slots[slot->index] : slot;

    death_unref(place->last_death);
    place->last_death = death_ref(death);
    death_log_add(slot_context(slot)->deaths, death);
    if (!expected) {
        slot->pool->n_deaths++;
        slot->pool->set->n_deaths++;
    }
    slot_tell_death(slot, death);
}

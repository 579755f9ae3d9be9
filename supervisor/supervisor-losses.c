/* SPDX-License-Identifier: MIT */

/* Logs what a stop loses, for each group: what is neither on disk nor handed to a next supervisor.
 * group_close() names the jobs. */

#include "supervisor/group/group.h"
#include "supervisor/message/actor.h"
#include "supervisor/supervisor-private.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum loss {
    LOSS_RESULT,
    LOSS_LETTER,
    LOSS_MESSAGE,
    LOSS_TIMER,
    LOSS_ASK,
    _LOSS_N,
};

static const char *const NAMES[_LOSS_N] = {
    [LOSS_RESULT] = "kept result",
    [LOSS_LETTER] = "dead letter",
    [LOSS_MESSAGE] = "waiting message",
    [LOSS_TIMER] = "timer",
    [LOSS_ASK] = "open ask",
};

struct losses {
    uint64_t n[_LOSS_N];
};

static int compare_name(const void *name, const void *element)
{
    const struct group *const *group = element;

    return strcmp(name, (*group)->name);
}

/* Returns the losses of the group of an address. The last element is for addresses without a
 * group. */
static struct losses *losses_of(struct losses *all, const struct registry *registry,
                                const char *address)
{
    const struct group *group = registry_group_of(registry, address);
    struct group *const *place = group ? bsearch(group->name, registry->sorted, registry->n_groups,
                                                 sizeof(*place), compare_name)
                                       : NULL;

    return all + (place ? (size_t)(place - registry->sorted) : registry->n_groups);
}

/* Counts dead letters in memory. Those of durable jobs are on disk. */
static void count_letters(struct losses *all, const struct registry *registry,
                          const struct dead_letters *letters)
{
    for (unsigned i = 0; i < _DEAD_N_QUEUES; i++)
        list_for_each_entry (letter, &letters->rings[i], struct dead_letter, link) {
            const bool known = registry_group_of(registry, letter->recipient);

            if (letter->row == 0)
                losses_of(all, registry, known ? letter->recipient : letter->sender)
                    ->n[LOSS_LETTER]++;
        }
}

static void count_messages(struct losses *all, const struct registry *registry,
                           const struct message_context *messages)
{
    actor_each (actor, &messages->actors) {
        struct losses *losses = losses_of(all, registry, actor->name);

        losses->n[LOSS_MESSAGE] += actor->mailbox.n;
        losses->n[LOSS_ASK] += actor->n_asks;
        losses->n[LOSS_TIMER] += schedule_count_for(actor);
    }
}

static void log_losses(const char *group, const struct losses *losses)
{
    const struct log_fields fields = LOG_FIELDS({"TROUPE_GROUP", group});
    char text[_LOSS_N * 48];
    size_t size = 0;

    for (unsigned i = 0; i < _LOSS_N; i++)
        if (losses->n[i] > 0)
            size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%" PRIu64 " %s%s",
                                     size > 0 ? ", " : "", losses->n[i], NAMES[i],
                                     losses->n[i] == 1 ? "" : "s");
    if (size > 0)
        log_write(LOG_LEVEL_WARNING, fields, "%s: lost by the stop: %s",
                  *group ? group : "clients and exchanges", text);
}

void supervisor_log_losses(const struct supervisor *supervisor)
{
    const struct registry *registry = &supervisor->parts.registry;
    const struct message_context *messages = &supervisor->parts.messages;
    struct losses *all = calloc(registry->n_groups + 1, sizeof(*all));

    if (!all)
        return;
    for (size_t i = 0; i < registry->n_groups; i++)
        if (!registry->sorted[i]->config->durable)
            all[i].n[LOSS_RESULT] = registry->sorted[i]->results.n_jobs;
    count_letters(all, registry, &messages->dead_letters);
    count_messages(all, registry, messages);
    for (size_t i = 0; i <= registry->n_groups; i++)
        log_losses(i < registry->n_groups ? registry->sorted[i]->name : "", all + i);
    free(all);
}

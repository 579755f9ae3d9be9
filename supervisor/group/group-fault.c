/* SPDX-License-Identifier: MIT */
#include "supervisor/group/group-fault.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/config/check/resolve.h"
#include "supervisor/group/group-private.h"
#include "supervisor/group/registry.h"
#include "supervisor/group/undescribed.h"
#include "supervisor/process/backoff.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_MIN USEC_PER_SEC
#define RETRY_MAX (30 * USEC_PER_SEC)

struct group_fault {
    struct list link; /* in struct group_faults */
    struct group *group;
    struct config_group *next; /* NULL = the group's own has the fault */
    usec_t due;                /* monotonic; USEC_INFINITY = on request */
    unsigned n_tries;
    bool asked; /* report the outcome in any case */
};

static struct group_faults *faults_of(const struct group_fault *fault)
{
    return &fault->group->context->registry->faults;
}

static struct config_group *config_of(const struct group_fault *fault)
{
    return fault->next ? fault->next : fault->group->config;
}

static void tell_fault(const struct group_fault *fault)
{
    group_tell(fault->group, LOG_LEVEL_ERROR, "group.cannot-start", "%s: %s",
               group_is_blocked(fault->group) ? "cannot start" : "keeps its previous configuration",
               config_of(fault)->fault);
}

/* Reads files that had a mistake again. */
static void read_again(struct group_fault *fault)
{
    const struct config_group *before = config_of(fault);
    struct config_group *config = NULL;

    if (!before->unread || group_is_undescribed(fault->group) ||
        config_read_group_alone(before->path, &config) < 0 || !config)
        return;
    config_refuse_other_kind(fault->group->config, config);
    fault->asked = fault->asked || !config->unread || strcmp(config->fault, before->fault) != 0;
    config_group_free(fault->next);
    fault->next = config;
}

/* ---- one after the other ---- */

static void arm(struct group_faults *faults)
{
    usec_t at = USEC_INFINITY;

    if (faults->tried)
        return;
    list_for_each_entry (fault, &faults->all, struct group_fault, link)
        at = usec_min(at, fault->due);
    timer_arm(loop_timers(faults->loop), &faults->timer, at);
}

static void end_try(struct group_fault *fault, const struct names *names);

static void finish(struct group_faults *faults)
{
    end_try(TAKE_PTR(faults->tried), &faults->lookup.names);
    lookup_deinit(&faults->lookup);
    arm(faults);
}

static void on_lookup_done(struct lookup *lookup)
{
    finish(list_entry(lookup, struct group_faults, lookup));
}

static struct group_fault *first_due(const struct group_faults *faults, usec_t now)
{
    list_for_each_entry (fault, &faults->all, struct group_fault, link)
        if (fault->due <= now)
            return fault;
    return NULL;
}

static void on_timer(struct timer *timer, usec_t now)
{
    struct group_faults *faults = list_entry(timer, struct group_faults, timer);
    struct group_fault *fault = first_due(faults, now);
    int r;

    if (!fault)
        return;
    faults->tried = fault;
    read_again(fault);
    lookup_init(&faults->lookup, faults->loop, on_lookup_done);
    r = config_want_group_names(config_of(fault), &faults->lookup.names);
    if (r == 0)
        r = lookup_start(&faults->lookup);
    if (r != 0)
        finish(faults);
}

void group_faults_init(struct group_faults *faults)
{
    *faults = (struct group_faults){0};
    list_init(&faults->all);
    timer_init(&faults->timer, on_timer);
}

/* ---- one fault ---- */

/* Moves the fault to the end of the list, so that each gets its turn. */
static void set_next_try(struct group_fault *fault)
{
    const struct backoff_policy policy = {.min = RETRY_MIN, .max = RETRY_MAX, .random = 0.2};
    const struct group_context *context = fault->group->context;

    fault->due = USEC_INFINITY;
    if (!group_is_undescribed(fault->group)) /* else a reload reads new files */
        fault->due = usec_add(loop_now(context->loop),
                              backoff_delay(&policy, fault->n_tries++, context->random));
    list_unlink(&fault->link);
    list_push_back(&faults_of(fault)->all, &fault->link);
    arm(faults_of(fault));
}

void group_fault_unblock(struct group *group)
{
    group_command(group, &(struct cell_command){.type = CELL_UNBLOCK});
    if (group->wanted)
        group_start(group);
}

static void on_mended(struct group_fault *fault)
{
    struct config_group *next = TAKE_PTR(fault->next);
    struct group *group = fault->group;
    const bool blocked = group_is_blocked(group);
    int r;

    group_tell(group, LOG_LEVEL_NOTICE, "group.mended", "has what was missing");
    group_fault_end(group);
    if (!next) {
        group_fault_unblock(group);
        return;
    }
    r = group_reconfigure(group, next);
    if (r < 0) {
        log_error("%s: cannot take its new configuration: %s", group->name, strerror(-r));
        config_group_free(next);
    } else if (blocked) {
        group_fault_unblock(group);
    }
}

/* Reports a fault again only if it has changed or was asked for. */
static void end_try(struct group_fault *fault, const struct names *names)
{
    struct config_problems problems = CONFIG_PROBLEMS_NULL;
    struct config_group *config = config_of(fault);
    _cleanup_free_ char *before = config->unread ? NULL : TAKE_PTR(config->fault);
    bool asked = fault->asked, same;
    int r = config_resolve_group(config, names, &problems);

    config_problems_deinit(&problems);
    fault->asked = false;
    if (r < 0 && before)
        config->fault = TAKE_PTR(before);
    group_note_user(fault->group);
    if (!config->fault) {
        on_mended(fault);
        return;
    }
    same = config->unread || (before && strcmp(before, config->fault) == 0);
    if (asked || (r == 0 && !same))
        tell_fault(fault);
    set_next_try(fault);
}

int group_fault_begin(struct group *group, struct config_group *next)
{
    struct group_fault *fault = calloc(1, sizeof(*fault));

    if (!fault)
        return -ENOMEM;
    group_fault_end(group);
    fault->group = group;
    fault->next = next;
    group->fault = fault;
    faults_of(fault)->loop = group->context->loop;
    list_init(&fault->link);
    if (!group_is_undescribed(group))
        tell_fault(fault); /* else once its jobs have been counted */
    set_next_try(fault);
    return 0;
}

void group_fault_end(struct group *group)
{
    struct group_faults *faults = &group->context->registry->faults;
    struct group_fault *fault = TAKE_PTR(group->fault);

    if (!fault)
        return;
    list_unlink(&fault->link);
    if (faults->tried == fault) {
        faults->tried = NULL;
        lookup_deinit(&faults->lookup);
    }
    arm(faults);
    config_group_free(fault->next);
    free(fault);
}

const char *group_fault_text(const struct group *group)
{
    return group->fault ? config_of(group->fault)->fault : NULL;
}

bool group_is_blocked(const struct group *group)
{
    return group->config->fault != NULL;
}

void group_fault_retry(struct group *group)
{
    struct group_fault *fault = group->fault;

    if (!fault)
        return;
    fault->asked = true;
    fault->n_tries = 0;
    fault->due = 0;
    arm(faults_of(fault));
}

bool group_fault_is_tried(const struct group *group)
{
    return group->fault &&
           (group->context->registry->faults.tried == group->fault || group->fault->asked);
}

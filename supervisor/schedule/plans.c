/* SPDX-License-Identifier: MIT */
#include "supervisor/schedule/plans.h"

#include "shared/base/log.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/store/durable-job.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void plans_init(struct plans *plans, const struct group_context *groups, struct kept_states *kept)
{
    *plans = (struct plans){.context = {.groups = groups, .kept = kept, .steps = &plans->steps}};
    work_queue_init(&plans->steps, groups->loop);
    settings_init(&plans->earlier, &SCHEDULE_ROWS);
}

static struct store *store_of(const struct plans *plans)
{
    return plans->context.groups->durable->store;
}

/* ---- reading ---- */

/* Begins with what was decided earlier: the schedule writes it from now on, or removes it. */
static void begin(struct plans *plans, struct plan *plan)
{
    const char *name = plan->config->name;
    const struct setting *setting = settings_find(&plans->earlier, name, strlen(name));

    plan_begin(plan, setting ? (const struct schedule_row *)setting->row : NULL);
    (void)settings_set(&plans->earlier, name, NULL);
}

static void begin_all(struct plans *plans)
{
    plans->begun = true;
    for (size_t i = 0; i < plans->n_plans; i++)
        begin(plans, plans->sorted[i]);
}

static void on_known(struct settings *settings)
{
    struct plans *plans = list_entry(settings, struct plans, earlier);

    if (!settings->read)
        log_error("schedules begin now");
    if (!plans->begun)
        begin_all(plans);
}

/* ---- the table ---- */

/* Returns where the name is, or would be. */
static size_t place_of(const struct plans *plans, const char *name)
{
    size_t low = 0, high = plans->n_plans;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (strcmp(plans->sorted[middle]->config->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct plan *plans_find(const struct plans *plans, const char *name)
{
    const size_t at = place_of(plans, name);

    return at < plans->n_plans && strcmp(plans->sorted[at]->config->name, name) == 0
               ? plans->sorted[at]
               : NULL;
}

static int add(struct plans *plans, struct config_schedule *config, config_strv *added)
{
    struct plan **sorted = reallocarray(plans->sorted, plans->n_plans + 1, sizeof(struct plan *));
    struct plan *plan;
    size_t at;
    int r;

    if (!sorted)
        return -ENOMEM;
    plans->sorted = sorted;
    r = strv_append_file(added, config->name, CONFIG_SCHEDULE_SUFFIX);
    if (r == 0)
        r = plan_new(&plan, &plans->context, config);
    if (r < 0)
        return r;
    r = handle_table_add(&plans->handles, plan, &plan->handle);
    if (r < 0) {
        plan->config = NULL; /* the caller's */
        plan_free(plan);
        return r;
    }
    at = place_of(plans, config->name);
    memmove(sorted + at + 1, sorted + at, (plans->n_plans - at) * sizeof(*sorted));
    sorted[at] = plan;
    plans->n_plans++;
    if (plans->begun)
        begin(plans, plan);
    return 0;
}

static int remove_missing(struct plans *plans, const struct config *config, config_strv *removed)
{
    size_t n = 0;
    int r = 0;

    for (size_t i = 0; i < plans->n_plans; i++) {
        struct plan *plan = plans->sorted[i];

        if (config_find_file(config, CONFIG_SCHEDULE, plan->config->name)) {
            plans->sorted[n++] = plan;
            continue;
        }
        r = r < 0 ? r : strv_append_file(removed, plan->config->name, CONFIG_SCHEDULE_SUFFIX);
        plan_remove_row(&plans->context, plan->config->name);
        handle_table_remove(&plans->handles, plan->handle);
        plan_free(plan);
    }
    plans->n_plans = n;
    return r;
}

static int take(struct plans *plans, struct config_schedule *config, config_strv *added,
                config_strv *changed)
{
    struct plan *plan = plans_find(plans, config->name);
    int r;

    if (!plan)
        r = add(plans, config, added);
    else if (config_schedule_equal(plan->config, config))
        r = -EALREADY;
    else
        r = strv_append_file(changed, config->name, CONFIG_SCHEDULE_SUFFIX);
    if (plan && r == 0)
        r = plan_reconfigure(plan, config);
    if (r < 0 && r != -EALREADY && r != -ENOMEM) {
        log_error("%s: its time zone cannot be read; the schedule stays as it was", config->path);
        r = -EALREADY;
    }
    if (r < 0)
        config_file_free(CONFIG_SCHEDULE, config);
    return r == -EALREADY ? 0 : r;
}

int plans_take(struct plans *plans, struct config *config, config_strv *added, config_strv *changed,
               config_strv *removed)
{
    struct config_files *files = &config->files[CONFIG_SCHEDULE];
    int r = remove_missing(plans, config, removed);

    for (size_t i = 0; r == 0 && i < files->n; i++)
        r = take(plans, TAKE_PTR(files->all[i]), added, changed);
    if (r == 0)
        files->n = 0;
    return r;
}

/* ---- life ---- */

/* The rows are read once, when the store opens; without a store that works, the schedules begin
 * without them. */
static void find_rows(struct plans *plans)
{
    struct store *store = store_of(plans);
    const enum store_state state = store ? store_state(store) : STORE_UNUSABLE;

    if (plans->begun || state == STORE_OPENING || plans->n_plans == 0)
        return;
    if (state == STORE_OPEN || state == STORE_FULL)
        settings_read(&plans->earlier, store, on_known);
    else
        begin_all(plans);
}

/* A clock that was set back by a lot makes schedules start again. */
static void on_clock_set(void *userdata)
{
    const struct plans *plans = userdata;

    for (size_t i = 0; i < plans->n_plans; i++)
        plan_review(plans->sorted[i]);
}

void plans_start(struct plans *plans)
{
    plans->context.groups->alarms->reviewed = on_clock_set;
    plans->context.groups->alarms->userdata = plans;
    for (size_t i = 0; i < plans->n_plans; i++)
        if (plans->sorted[i]->known)
            plan_begin(plans->sorted[i], NULL);
    find_rows(plans);
}

void plans_review(struct plans *plans)
{
    find_rows(plans);
    for (size_t i = 0; i < plans->n_plans; i++)
        plan_review(plans->sorted[i]);
}

void plans_stop(struct plans *plans)
{
    plans->context.stopped = true;
}

void plans_deinit(struct plans *plans)
{
    for (size_t i = 0; i < plans->n_plans; i++)
        plan_free(plans->sorted[i]);
    if (plans->context.steps)
        work_queue_deinit(&plans->steps);
    free(plans->sorted);
    handle_table_deinit(&plans->handles);
    settings_deinit(&plans->earlier);
    plans->sorted = NULL;
    plans->n_plans = 0;
}

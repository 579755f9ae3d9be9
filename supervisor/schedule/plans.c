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
}

static struct store *store_of(const struct plans *plans)
{
    return plans->context.groups->durable->store;
}

/* ---- reading ---- */

struct plan_rows {
    struct store_task task;
    struct plans *plans; /* NULL = they have ended */
    struct plan_row {
        struct schedule_row row;
        bool claimed;
        char name[CONFIG_SCHEDULE_NAME_MAX + 1];
    } * rows;
    size_t n, n_allocated;
};

static struct plan_rows *free_rows(struct plan_rows *rows)
{
    if (rows)
        free(rows->rows);
    free(rows);
    return NULL;
}

static int note_row(void *userdata, const char *name, const struct schedule_row *row)
{
    struct plan_rows *rows = userdata;

    if (strlen(name) > CONFIG_SCHEDULE_NAME_MAX)
        return 0;
    if (rows->n == rows->n_allocated) {
        const size_t n = rows->n_allocated > 0 ? 2 * rows->n_allocated : 64;
        struct plan_row *grown = reallocarray(rows->rows, n, sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        rows->rows = grown;
        rows->n_allocated = n;
    }
    rows->rows[rows->n].row = *row;
    rows->rows[rows->n].claimed = false;
    (void)stpcpy(rows->rows[rows->n++].name, name);
    return 0;
}

static int apply_read(struct store_task *task, struct database *database)
{
    struct plan_rows *rows = list_entry(task, struct plan_rows, task);

    rows->n = 0;
    return schedule_rows_scan(database, note_row, rows);
}

/* Returns the row once: the schedule writes it from now on, or removes it. */
static const struct schedule_row *claim_row(const struct plans *plans, const char *name)
{
    for (size_t i = 0; plans->rows && i < plans->rows->n; i++) {
        struct plan_row *row = &plans->rows->rows[i];

        if (!row->claimed && strcmp(row->name, name) == 0) {
            row->claimed = true;
            return &row->row;
        }
    }
    return NULL;
}

static void begin_all(struct plans *plans)
{
    plans->begun = true;
    for (size_t i = 0; i < plans->n_plans; i++)
        plan_begin(plans->sorted[i], claim_row(plans, plans->sorted[i]->config->name));
}

static void on_read(struct store_task *task, int result)
{
    struct plan_rows *rows = list_entry(task, struct plan_rows, task);
    struct plans *plans = rows->plans;

    if (!plans || result == -ECANCELED) {
        if (plans)
            plans->reads = false;
        free_rows(rows);
        return;
    }
    plans->reads = false;
    if (result == 0) {
        plans->rows = rows;
    } else {
        log_error("what schedules have decided cannot be read from disk: %s; they begin now",
                  strerror(-result));
        free_rows(rows);
    }
    begin_all(plans);
}

/* Reads the rows, once the store is open. */
static void read_rows(struct plans *plans)
{
    struct plan_rows *rows = calloc(1, sizeof(*rows));

    if (!rows) {
        log_error("out of memory: schedules begin now");
        begin_all(plans);
        return;
    }
    rows->task = (struct store_task){.apply = apply_read, .done = on_read};
    list_init(&rows->task.link);
    rows->plans = plans;
    plans->reads = true;
    store_add(store_of(plans), &rows->task);
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
        plan_begin(plan, claim_row(plans, config->name));
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

    if (plans->begun || plans->reads || state == STORE_OPENING || plans->n_plans == 0)
        return;
    if (state == STORE_OPEN || state == STORE_FULL)
        read_rows(plans);
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
    free_rows(plans->rows);
    plans->sorted = NULL;
    plans->rows = NULL;
    plans->n_plans = 0;
}

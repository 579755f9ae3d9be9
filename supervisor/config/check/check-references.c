/* SPDX-License-Identifier: MIT */

/* Checks the keys that name groups, After=, OnOom= and Group= of schedules: each group that they
 * name exists, no group waits for itself, and the groups of OnOom= and of schedules can take the
 * jobs. Checks that the limits of Uses= exist. */

#include "supervisor/config/check/check.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/syntax/strings.h"
#include "supervisor/config/syntax/suggest.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ON_OOM "OnOom"
#define NONE   SIZE_MAX

enum mark {
    UNSEEN,
    ON_PATH, /* on the current path: an edge to it closes a cycle */
    DONE,
};

struct node {
    enum mark mark;
    size_t next; /* on the path: the group that this one waits for */
};

/* The groups, sorted by name. */
struct graph {
    struct config_group *const *groups;
    size_t n_groups;
    bool alone; /* it has one group only: others are files beside it, or in CONFIG_DIRECTORY */
    struct node *nodes;
};

static size_t find(const struct graph *graph, const char *name)
{
    size_t low = 0, high = graph->n_groups;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, graph->groups[middle]->name);

        if (order == 0)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NONE;
}

/* Returns whether the directory has a file of this name, or -ENOMEM. */
static int exists_in(const char *directory, size_t size, const char *name, const char *suffix)
{
    _cleanup_free_ char *path = path_join_n(directory, size, name, suffix);

    return path ? access(path, F_OK) == 0 : -ENOMEM;
}

static int exists_beside(const char *path, const char *name, const char *suffix)
{
    const char *slash = strrchr(path, '/'), *directory = slash ? path : ".";
    int r = exists_in(directory, slash ? (size_t)(slash - directory) : 1, name, suffix);

    return r != 0 ? r : exists_in(CONFIG_DIRECTORY, strlen(CONFIG_DIRECTORY), name, suffix);
}

/* Checks that a group that is not in the graph exists. */
static int check_exists(const struct graph *graph, struct config_draft *draft, const char *key,
                        const char *name)
{
    _cleanup_free_ const char **names = calloc(graph->n_groups + 1, sizeof(*names));
    int r = graph->alone ? exists_beside(draft->paths[0], name, ".group") : 0;
    const char *nearest;

    if (!names)
        return -ENOMEM;
    if (r != 0)
        return r < 0 ? r : 0;
    for (size_t i = 0; i < graph->n_groups; i++)
        names[i] = graph->groups[i]->name;
    nearest = graph->alone ? NULL : suggest_nearest(name, names);
    return config_draft_problem(draft, key, "%s=%s%s: unknown group%s%s%s", key, name,
                                config_draft_given(draft, key) ? "" : " (the default)",
                                nearest ? "; did you mean '"
                                        : "; allowed: names of NAME.group files",
                                nearest ? nearest : "", nearest ? "'?" : "");
}

/* ---- After= ---- */

/* "a -> b -> a", from `first` along the path. */
static int report_cycle(const struct graph *graph, size_t first)
{
    char text[512];
    size_t used = 0, at = first;

    do {
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%s -> ", graph->groups[at]->name);
        at = graph->nodes[at].next;
    } while (at != first && used < sizeof(text) / 2);
    return config_draft_problem(graph->groups[first]->draft, "After",
                                "After= makes groups wait for each other: %s%s%s", text,
                                at == first ? "" : "... -> ", graph->groups[first]->name);
}

/* Depth first; each level of recursion takes a file. */
static int follow(const struct graph *graph, size_t index)
{
    const struct config_group *group = graph->groups[index];
    struct node *node = &graph->nodes[index];
    int r = 0;

    node->mark = ON_PATH;
    for (char **name = group->after.strings; r == 0 && name && *name; name++) {
        node->next = find(graph, *name);
        if (node->next == NONE)
            r = check_exists(graph, group->draft, "After", *name);
        else if (graph->nodes[node->next].mark == ON_PATH)
            r = report_cycle(graph, node->next);
        else if (graph->nodes[node->next].mark == UNSEEN)
            r = follow(graph, node->next);
    }
    node->mark = DONE;
    return r;
}

/* ---- OnOom= ---- */

static int refuse(const struct config_group *group, const char *why, const char *allowed)
{
    return config_draft_problem(group->draft, ON_OOM, ON_OOM "=%s: %s; allowed: %s", group->on_oom,
                                why, allowed);
}

static int check_pair(const struct config_group *group, const struct config_group *other)
{
    if (other == group)
        return refuse(group, "a job that ran out of memory would find no more in the same group",
                      "the name of another group");
    if (other->type != CONFIG_ACTOR)
        return refuse(group, "it is a service, which takes no jobs", "a group with Type=actor");
    if (other->durable != group->durable)
        return refuse(group, "only one of the two groups has Durable=yes",
                      "the same Durable= in both");
    if (other->cells == CONFIG_CELLS_BY_KEY && group->cells == CONFIG_CELLS_NONE)
        return refuse(group, "it has Cells=by-key, and jobs of this group may have no key",
                      "a group without cells, or Cells=by-key in both");
    if (other->on_oom)
        return refuse(group, "it also has OnOom=, and a job moves only once",
                      "a group without OnOom=");
    return 0;
}

static int check_oom(const struct graph *graph, const struct config_group *group)
{
    size_t other;

    if (!group->on_oom || group->type != CONFIG_ACTOR) /* reported by config_check_group() */
        return 0;
    other = find(graph, group->on_oom);
    return other == NONE ? check_exists(graph, group->draft, ON_OOM, group->on_oom)
                         : check_pair(group, graph->groups[other]);
}

/* ---- Uses= ---- */

/* `limits`: NULL = files beside the group's. Returns whether the limit exists, or -ENOMEM. */
static int has_limit(const struct config_group *group, const char *name,
                     const struct config *limits)
{
    return limits ? config_find_file(limits, CONFIG_LIMIT, name) != NULL
                  : exists_beside(group->draft->paths[0], name, CONFIG_LIMIT_SUFFIX);
}

static int check_use(const struct config_group *group, const char *name,
                     const struct config *limits)
{
    const struct config_file *limit = limits ? config_find_file(limits, CONFIG_LIMIT, name) : NULL;
    const struct config_files all = limits ? limits->files[CONFIG_LIMIT] : (struct config_files){0};
    _cleanup_free_ const char **names = calloc(all.n + 1, sizeof(*names));
    int r = names ? has_limit(group, name, limits) : -ENOMEM;
    const char *nearest;

    if (limit && limit->broken)
        return config_draft_problem(group->draft, "Uses", "Uses=%s: %s has a mistake", name,
                                    limit->path);
    if (r != 0)
        return r < 0 ? r : 0;
    for (size_t i = 0; i < all.n; i++)
        names[i] = ((const struct config_file *)all.all[i])->name;
    nearest = suggest_nearest(name, names);
    return config_draft_problem(group->draft, "Uses", "Uses=%s: unknown limit%s%s%s", name,
                                nearest ? "; did you mean '"
                                        : "; allowed: names of NAME.limit files",
                                nearest ? nearest : "", nearest ? "'?" : "");
}

static int check_uses(const struct config_group *group, const struct config *limits)
{
    char **name = group->uses.strings;
    size_t n = 0;
    int r = 0;

    for (; r == 0 && name && name[n]; n++)
        r = check_use(group, name[n], limits);
    if (r == 0 && n > CONFIG_USES_MAX)
        r = config_draft_problem(group->draft, "Uses", "Uses= names %zu limits; allowed: up to %d",
                                 n, CONFIG_USES_MAX);
    return r;
}

int config_check_uses(const struct config *config)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < config->n_groups; i++)
        r = check_uses(config->groups[i], config);
    return r;
}

int config_check_references(struct config_group *const *groups, size_t n_groups, bool alone)
{
    _cleanup_free_ struct node *nodes = calloc(n_groups + 1, sizeof(*nodes));
    const struct graph graph = {groups, n_groups, alone, nodes};
    int r = nodes ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < n_groups; i++)
        if (nodes[i].mark == UNSEEN)
            r = follow(&graph, i);
    for (size_t i = 0; r == 0 && i < n_groups; i++)
        r = check_oom(&graph, groups[i]);
    if (r == 0 && alone)
        r = check_uses(groups[0], NULL);
    return r;
}

/* ---- schedules ---- */

static int check_taker(const struct config_schedule *schedule, const struct config_group *group)
{
    if (group->type != CONFIG_ACTOR)
        return config_draft_problem(schedule->draft, "Group",
                                    "Group=%s is a service, which takes no jobs; allowed: a group "
                                    "with Type=actor",
                                    group->name);
    if (group->cells == CONFIG_CELLS_BY_KEY && !schedule->key)
        return config_draft_problem(schedule->draft, "Key",
                                    "Key= is missing in [Job]: group %s has Cells=by-key",
                                    group->name);
    return 0;
}

static int check_schedule(const struct graph *graph, const struct config_schedule *schedule)
{
    const char *name = config_schedule_group(schedule);
    const size_t at = find(graph, name);

    return at == NONE ? check_exists(graph, schedule->draft, "Group", name)
                      : check_taker(schedule, graph->groups[at]);
}

int config_check_schedules(const struct config *config, bool alone)
{
    const struct graph graph = {
        .groups = config->groups, .n_groups = config->n_groups, .alone = alone};
    const struct config_files *files = &config->files[CONFIG_SCHEDULE];
    int r = 0;

    for (size_t i = 0; r == 0 && i < files->n; i++) {
        const struct config_schedule *schedule = files->all[i];

        if (schedule->draft->paths)
            r = check_schedule(&graph, schedule);
    }
    return r;
}

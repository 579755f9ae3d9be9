/* SPDX-License-Identifier: MIT */

/* Checks After=: each group that it names exists, and no group waits for itself. */

#include "supervisor/config/check/check.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/syntax/path.h"
#include "supervisor/config/syntax/suggest.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum mark {
    UNSEEN,
    ON_PATH, /* on the current path: an edge to it closes a cycle */
    DONE,
};

struct node {
    enum mark mark;
    size_t next; /* on the path: the group that this one waits for */
};

struct graph {
    struct config_group *const *groups;
    size_t n_groups;
    struct node *nodes;
};

#define NOT_FOUND SIZE_MAX

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
    return NOT_FOUND;
}

static int unknown_group(const struct config_group *group, const char *name, const char *nearest)
{
    return config_draft_problem(group->draft, "After", "After=%s: unknown group%s%s%s", name,
                                nearest ? "; did you mean '"
                                        : "; allowed: names of NAME.group files",
                                nearest ? nearest : "", nearest ? "'?" : "");
}

static int check_names(const struct graph *graph)
{
    _cleanup_free_ const char **names = calloc(graph->n_groups + 1, sizeof(*names));
    int r = 0;

    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < graph->n_groups; i++)
        names[i] = graph->groups[i]->name;
    for (size_t i = 0; i < graph->n_groups; i++)
        for (char **name = graph->groups[i]->after.strings; r == 0 && name && *name; name++)
            if (find(graph, *name) == NOT_FOUND)
                r = unknown_group(graph->groups[i], *name, suggest_nearest(*name, names));
    return r;
}

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
    struct node *node = &graph->nodes[index];
    int r = 0;

    node->mark = ON_PATH;
    for (char **name = graph->groups[index]->after.strings; r == 0 && name && *name; name++) {
        node->next = find(graph, *name);
        if (node->next == NOT_FOUND)
            continue;
        if (graph->nodes[node->next].mark == ON_PATH)
            r = report_cycle(graph, node->next);
        else if (graph->nodes[node->next].mark == UNSEEN)
            r = follow(graph, node->next);
    }
    node->mark = DONE;
    return r;
}

int config_check_after(struct config_group *const *groups, size_t n_groups)
{
    _cleanup_free_ struct node *nodes = calloc(n_groups + 1, sizeof(*nodes));
    const struct graph graph = {groups, n_groups, nodes};
    int r;

    if (!nodes)
        return -ENOMEM;
    r = check_names(&graph);
    for (size_t i = 0; r == 0 && i < n_groups; i++)
        if (nodes[i].mark == UNSEEN)
            r = follow(&graph, i);
    return r;
}

/* Returns whether the directory has a file for the group, or -ENOMEM. */
static int exists_in(const char *directory, size_t size, const char *name)
{
    _cleanup_free_ char *path = path_join_n(directory, size, name, ".group");

    return path ? access(path, F_OK) == 0 : -ENOMEM;
}

int config_check_after_beside(const struct config_group *group)
{
    const char *slash = strrchr(group->path, '/'), *directory = slash ? group->path : ".";
    const size_t size = slash ? (size_t)(slash - directory) : 1;
    int r = 0;

    for (char **name = group->after.strings; r == 0 && name && *name; name++) {
        r = exists_in(directory, size, *name);
        if (r == 0)
            r = exists_in(CONFIG_DIRECTORY, strlen(CONFIG_DIRECTORY), *name);
        if (r == 0)
            r = unknown_group(group, *name, NULL);
        else if (r > 0 && strcmp(*name, group->name) == 0)
            r = config_draft_problem(group->draft, "After",
                                     "After= makes the group wait for itself: %s", *name);
        else if (r > 0)
            r = 0;
    }
    return r;
}

/* SPDX-License-Identifier: MIT */

/* Checks After=: each group that it names exists, and no group waits for itself. */

#include "supervisor/config/check/check.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/check/neighbours.h"
#include "supervisor/config/keys/draft.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct neighbours all;
    struct node *nodes;
};

static int check_names(const struct graph *graph)
{
    int r = 0;

    for (size_t i = 0; i < graph->all.n_groups; i++) {
        const struct config_group *group = graph->all.groups[i];

        for (char **name = group->after.strings; r == 0 && name && *name; name++)
            r = neighbours_check(&graph->all, group, "After", *name);
    }
    return r;
}

/* "a -> b -> a", from `first` along the path. */
static int report_cycle(const struct graph *graph, size_t first)
{
    char text[512];
    size_t used = 0, at = first;

    do {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s -> ",
                                 graph->all.groups[at]->name);
        at = graph->nodes[at].next;
    } while (at != first && used < sizeof(text) / 2);
    return config_draft_problem(graph->all.groups[first]->draft, "After",
                                "After= makes groups wait for each other: %s%s%s", text,
                                at == first ? "" : "... -> ", graph->all.groups[first]->name);
}

/* Depth first; each level of recursion takes a file. */
static int follow(const struct graph *graph, size_t index)
{
    struct node *node = &graph->nodes[index];
    int r = 0;

    node->mark = ON_PATH;
    for (char **name = graph->all.groups[index]->after.strings; r == 0 && name && *name; name++) {
        node->next = neighbours_find(&graph->all, *name);
        if (node->next == NEIGHBOURS_NONE)
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
    const struct graph graph = {{groups, n_groups}, nodes};
    int r;

    if (!nodes)
        return -ENOMEM;
    r = check_names(&graph);
    for (size_t i = 0; r == 0 && i < n_groups; i++)
        if (nodes[i].mark == UNSEEN)
            r = follow(&graph, i);
    return r;
}

int config_check_after_beside(const struct config_group *group)
{
    int r = 0;

    for (char **name = group->after.strings; r == 0 && name && *name; name++) {
        bool exists;

        r = neighbours_check_beside(group, "After", *name, &exists);
        if (r == 0 && exists && strcmp(*name, group->name) == 0)
            r = config_draft_problem(group->draft, "After",
                                     "After= makes the group wait for itself: %s", *name);
    }
    return r;
}

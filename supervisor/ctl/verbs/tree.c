/* SPDX-License-Identifier: MIT */

/* The verb tree: a job, and below it the jobs that it waits for, each with its own. */

#include "shared/base/cleanup.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/pattern.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"

/* A graph may have any size; most have few levels. */
#define LINES_MAX 1000
#define DEPTH_MAX 32

#define JOB "{state:dot} {id}[  {state:state}][  {group}][  {members.live:count} live members]"

struct tree {
    struct invocation *invocation;
    json_t *jobs;  /* all of them, in the order of the lines */
    json_t *shown; /* ids of those whose parents are shown */
};

static int show_job_below(struct tree *tree, json_t *known, const char *indent, bool last,
                          unsigned depth);

/* Shows the jobs that a job waits for, or has waited for. */
static int show_parents(struct tree *tree, const json_t *parents, const char *indent,
                        unsigned depth)
{
    const size_t n = json_array_size(parents);
    int r = EXIT_OK;

    for (size_t i = 0; r == EXIT_OK && i < n; i++)
        r = show_job_below(tree, json_array_get(parents, i), indent, i + 1 == n, depth);
    return r;
}

/* Asks for a job. `*ret` is NULL if nothing is known of it any more; the caller owns it. */
static int ask(struct tree *tree, const char *id, json_t **ret)
{
    struct varlink_reply reply;
    int r =
        call_any(tree->invocation, CALL_JOBS "Get", json_pack("{s:s}", "id", id), false, &reply);

    *ret = NULL;
    if (r != EXIT_OK)
        return r;
    if (!reply.error)
        *ret = json_incref(json_object_get(reply.parameters, "job"));
    else if (json_array_size(tree->jobs) == 0)
        r = explain_error(reply.error, reply.parameters);
    varlink_reply_deinit(&reply);
    return r;
}

static int add_line(struct tree *tree, json_t *job, const char *indent, const char *mark)
{
    _cleanup_free_ char *text = pattern_text(JOB, job, clock_realtime());

    if (json_array_append(tree->jobs, job) < 0 || !text)
        return call_no_memory();
    if (!tree->invocation->options.json)
        terminal_print(&tree->invocation->out, "%s%s%s", indent, mark, text);
    return EXIT_OK;
}

/* `known` has the id, and the state if that is known: all there is of a job that was forgotten. */
static int show_job_below(struct tree *tree, json_t *known, const char *indent, bool last,
                          unsigned depth)
{
    const char *id = field_text(known, "id");
    const bool again = json_object_get(tree->shown, id) != NULL, root = depth == 0;
    json_auto_t *job = NULL;
    char below[4 * DEPTH_MAX * 3 + 1];
    int r = EXIT_OK;

    if (json_array_size(tree->jobs) == LINES_MAX)
        return EXIT_OK;
    if (!again)
        r = ask(tree, id, &job);
    if (r == EXIT_OK)
        r = add_line(tree, job ? job : known, indent, root ? "" : last ? "└─ " : "├─ ");
    if (r != EXIT_OK || !job || depth == DEPTH_MAX)
        return r;
    if (json_object_set_new(tree->shown, id, json_true()) < 0)
        return call_no_memory();
    (void)snprintf(below, sizeof(below), "%s%s", indent, root ? "" : last ? "   " : "│  ");
    return show_parents(tree, json_object_get(job, "after"), below, depth + 1);
}

static void show_end(const struct invocation *invocation, const json_t *reply)
{
    if (json_array_size(json_object_get(reply, "jobs")) == LINES_MAX)
        terminal_print(&invocation->out, "only the first %d jobs are shown", LINES_MAX);
}

static int show_tree(struct invocation *invocation, const char *id)
{
    json_auto_t *shown = json_object(), *known = json_pack("{s:s}", "id", id);
    json_auto_t *reply = json_pack("{s:[]}", "jobs");
    struct tree tree = {
        .invocation = invocation, .jobs = json_object_get(reply, "jobs"), .shown = shown};
    int r;

    if (!shown || !known || !reply)
        return call_no_memory();
    r = show_job_below(&tree, known, "", true, 0);
    return r == EXIT_OK ? output_reply(invocation, reply, show_end) : r;
}

int verb_tree(struct invocation *invocation)
{
    return invocation_each(invocation, 0, show_tree);
}

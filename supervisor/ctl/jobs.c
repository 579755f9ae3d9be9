/* SPDX-License-Identifier: MIT */
#include "../../shared/cleanup.h"
#include "call.h"
#include "field.h"
#include "format.h"
#include "invocation.h"
#include "show.h"
#include "verbs.h"
#include <inttypes.h>

int verb_jobs(struct invocation *invocation)
{
    const struct options *options = &invocation->options;
    const json_t *jobs;
    uint64_t total;
    json_t *parameters, *reply;
    int r;

    parameters = json_pack("{s:s*, s:b}", "group", invocation_operand(invocation, 0), "ended",
                           options->ended);
    if (parameters && options->limit > 0)
        json_object_set_new(parameters, "limit", json_integer(options->limit));
    r = call(invocation, CALL_JOBS "List", parameters, false, &reply);
    if (r != EXIT_OK)
        return r;
    jobs = json_object_get(reply, "jobs");
    total = field_count(reply, "total");
    if (options->json) {
        r = call_print_json(invocation, reply);
    } else if (json_array_size(jobs) > 0) {
        show_jobs(&invocation->out, jobs, clock_realtime());
        if (total > json_array_size(jobs) && !options->quiet)
            terminal_print(&invocation->out, DIM "%s of %s jobs; --limit N shows more" PLAIN,
                           COUNT(json_array_size(jobs)), COUNT(total));
    } else if (!options->quiet) {
        terminal_print(&invocation->out, "No %sjobs.", options->ended ? "" : "live ");
    }
    json_decref(reply);
    return r;
}

/* Live jobs and successes are fine. */
static int job_exit_status(const json_t *job)
{
    return field_is(job, "state", "failed") || field_is(job, "state", "dead") ||
                   field_is(job, "state", "cancelled")
               ? EXIT_FAILED
               : EXIT_OK;
}

static int follow_job(struct invocation *invocation, const json_t *parameters, bool last,
                      void *userdata)
{
    const json_t *job = json_object_get(parameters, "job");

    (void)userdata;
    if (invocation->options.json) {
        if (call_print_json_line(parameters) != EXIT_OK)
            return EXIT_FAILED;
    } else {
        show_job_state(&invocation->out, job, clock_realtime());
        if (last)
            show_job(&invocation->out, job, clock_realtime());
        fflush(stdout);
    }
    return last ? job_exit_status(job) : EXIT_OK;
}

int verb_job(struct invocation *invocation)
{
    json_t *parameters = json_pack("{s:s}", "id", invocation_operand(invocation, 0));
    const json_t *job;
    json_t *reply;
    int r;

    if (!parameters)
        return call_no_memory();
    if (invocation->options.follow)
        return call_more(invocation, CALL_JOBS "Get", parameters, follow_job, NULL);
    r = call(invocation, CALL_JOBS "Get", parameters, false, &reply);
    if (r != EXIT_OK)
        return r;
    job = json_object_get(reply, "job");
    r = job_exit_status(job);
    if (invocation->options.json) {
        if (call_print_json(invocation, reply) != EXIT_OK)
            r = EXIT_FAILED;
    } else {
        show_job(&invocation->out, job, clock_realtime());
    }
    json_decref(reply);
    return r;
}

int verb_cancel(struct invocation *invocation)
{
    int status = EXIT_OK;

    for (size_t i = 0; i < invocation->n_operands; i++) {
        json_t *reply;
        int r;

        r = call(invocation, CALL_JOBS "Cancel", json_pack("{s:s}", "id", invocation->operands[i]),
                 false, &reply);
        if (r == EXIT_UNREACHABLE)
            return r;
        if (r != EXIT_OK) {
            status = r;
            continue;
        }
        if (invocation->options.json)
            call_print_json_line(reply);
        json_decref(reply);
    }
    return status;
}

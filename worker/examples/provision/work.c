/* SPDX-License-Identifier: MIT */

/*
 * The worker: one order at a time. It logs each action before it begins (in its journal, and in its
 * state page, which is visible from outside), and ends every order with an outcome.
 */

#include "worker/examples/provision/catalogue.h"
#include "worker/examples/provision/desk.h"
#include "worker/examples/provision/journal.h"
#include "worker/examples/provision/order.h"
#include "worker/examples/provision/outcome.h"
#include "worker/examples/provision/providers.h"
#include "worker/examples/provision/provision.h"
#include "worker/troupe.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_MSEC 30000

struct work {
    const char *journal;
    struct providers providers;
};

static void publish(struct troupe_job *job, const char *phase)
{
    char state[300];
    int n = snprintf(state, sizeof(state), "{\"order\":\"%s\",\"attempt\":%u,\"phase\":\"%s\"}",
                     troupe_job_id(job), troupe_job_attempt(job), phase);

    (void)troupe_worker_publish_state(troupe_job_worker(job), state, (size_t)n);
}

static void publish_idle(struct troupe_job *job)
{
    static const char state[] = "{\"phase\":\"idle\"}";

    (void)troupe_worker_publish_state(troupe_job_worker(job), state, strlen(state));
}

static void wait_for_approval(struct troupe_job *job, const char *desk, struct outcome *outcome)
{
    char reason[200];
    bool yes;
    int r;

    publish(job, "approval");
    r = desk_decide(desk, &yes, reason, sizeof(reason));
    if (r < 0)
        outcome_fail(outcome, PROVISION_REFUSED, "nobody can approve it: %s", strerror(-r));
    else if (!yes)
        outcome_fail(outcome, PROVISION_REFUSED, "not approved: %s", reason);
    else
        outcome_say(outcome, "approved");
}

/* 0 = the outcome is complete. */
static int carry_out(struct work *work, struct troupe_job *job, struct order *order,
                     struct outcome *outcome)
{
    const struct product *product = catalogue_find(order->product);
    const char *providers = order_get(order, "providers"), *desk = order_get(order, "approval");
    int r = 0;

    if (!product)
        outcome_fail(outcome, PROVISION_UNKNOWN_PRODUCT, "unknown product: %s", order->product);
    else if (!order_get(order, product->needs))
        outcome_fail(outcome, PROVISION_INCOMPLETE, "missing property: %s", product->needs);
    if (outcome->code == PROVISION_DONE && providers) {
        publish(job, "provider");
        r = providers_ask(&work->providers, providers, order, outcome);
    }
    if (r == 0 && outcome->code == PROVISION_DONE && desk)
        wait_for_approval(job, desk, outcome);
    if (r == 0 && outcome->code == PROVISION_DONE)
        r = catalogue_fill(product, order);
    if (r == 0 && outcome->code == PROVISION_DONE)
        outcome_say(outcome, "%s is set up", product->name);
    return r;
}

static int provision(struct work *work, struct troupe_job *job, struct order *order,
                     struct outcome *outcome)
{
    const char *payload, *problem;
    size_t size;
    int r;

    payload = troupe_job_payload(job, &size);
    r = order_parse(order, payload, size, &problem);
    if (r == 0)
        r = carry_out(work, job, order, outcome);
    else if (r == -EINVAL) {
        outcome_fail(outcome, PROVISION_MALFORMED, "%s", problem);
        r = 0;
    }
    return r;
}

static int handle(struct troupe_job *job, void *userdata)
{
    struct work *work = userdata;
    const struct troupe_worker *worker = troupe_job_worker(job);
    struct outcome outcome;
    struct order order;
    int r;

    publish(job, "begun");
    journal_write(work->journal, "%s %" PRIu64 " begin %s %u", troupe_worker_name(worker),
                  troupe_worker_generation(worker), troupe_job_id(job), troupe_job_attempt(job));
    outcome_init(&outcome);
    r = provision(work, job, &order, &outcome);
    /* Leaves no state for the next order, whatever the outcome. */
    providers_forget(&work->providers);
    publish_idle(job);
    journal_write(work->journal, "%s %" PRIu64 " end %s %d", troupe_worker_name(worker),
                  troupe_worker_generation(worker), troupe_job_id(job),
                  r < 0 ? r : (int)outcome.code);
    if (r == 0)
        r = outcome_end(&outcome, &order, job);
    order_deinit(&order);
    outcome_deinit(&outcome);
    return r;
}

static int parse(struct work *work, int argc, char *argv[])
{
    static const struct option options[] = {{"journal", required_argument, NULL, 'j'},
                                            {"patience", required_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};
    unsigned long msec = PATIENCE_MSEC;
    char *end = "";
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'j')
            work->journal = optarg;
        else if (option == 'p')
            msec = strtoul(optarg, &end, 10);
        if (option == '?' || *end || msec == 0 || msec > UINT32_MAX)
            return -EINVAL;
    }
    work->providers.patience_usec = msec * 1000;
    return optind == argc ? 0 : -EINVAL;
}

int provision_work(int argc, char *argv[])
{
    struct work work = {0};
    struct troupe_worker *worker;
    int r;

    if (parse(&work, argc, argv) < 0) {
        fputs("provision work [--journal=FILE] [--patience=MSEC]\n", stderr);
        return 2;
    }
    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    work.providers.actor = troupe_worker_actor(worker);
    troupe_worker_on_job(worker, handle, &work);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}

/* SPDX-License-Identifier: MIT */

/*
 * The start message: enqueues N items and counts their outcomes. It waits for room if the group's
 * queue is full (QueueMax=), or with --impatient counts the refusals.
 */

#include "worker/examples/orchestrate/orchestrate.h"
#include "worker/troupe.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A connection may wait for 65536 ends at a time: that many items need more than one. */
#define ITEMS_PER_SENDER 50000
/* The ring is full because the supervisor is busy, or waits for room on our behalf: try again. */
#define FULL_USEC 1000

struct batch {
    const char *group;
    uint64_t n_items, size;
    uint64_t fail_every, crash_every, hang_every; /* 0 = never */
    struct troupe_job_options options;
    uint64_t ends[4], n_busy;
};

struct sender {
    struct batch *batch;
    struct troupe_client *client;
    uint64_t n_waiting; /* for the end of so many items */
};

static bool is_one_of(uint64_t i, uint64_t every)
{
    return every > 0 && i % every == 0;
}

static int submit(struct sender *sender, uint64_t group, uint64_t i)
{
    const struct batch *batch = sender->batch;
    char item[ORCHESTRATE_ITEM_MAX];
    const char *how = is_one_of(i, batch->fail_every)    ? " fail"
                      : is_one_of(i, batch->crash_every) ? " crash"
                      : is_one_of(i, batch->hang_every)  ? " hang"
                                                         : "";
    int size = snprintf(item, sizeof(item), "item-%llu %llu%s", (unsigned long long)i,
                        (unsigned long long)batch->size, how);

    return troupe_client_submit(sender->client, group, &batch->options, item, (size_t)size, i);
}

/* Takes the next job end, if there is one within that time. */
static int take(struct sender *sender, uint64_t timeout_usec)
{
    struct batch *batch = sender->batch;
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = troupe_client_next(sender->client, &result, timeout_usec);

    if (r < 0)
        return r == -EINTR || r == -EAGAIN ? 0 : r;
    sender->n_waiting--;
    if (result.error == -EBUSY)
        batch->n_busy++;
    else if (result.error < 0)
        r = result.error;
    else
        batch->ends[result.end]++;
    troupe_result_release(&result);
    return r;
}

static int submit_all(struct sender *sender, uint64_t first, uint64_t last)
{
    uint64_t group;
    int r;

    r = troupe_client_connect(&sender->client, NULL);
    if (r == 0)
        r = troupe_client_group(sender->client, sender->batch->group, &group);
    for (uint64_t i = first; r == 0 && i <= last;) {
        r = submit(sender, group, i);
        if (r == 0) {
            sender->n_waiting++;
            i++;
        } else if (r == -EAGAIN) {
            r = take(sender, FULL_USEC);
        }
    }
    if (r == 0)
        troupe_client_flush(sender->client);
    return r;
}

static int run(struct batch *batch, struct sender *senders, uint64_t n_senders)
{
    int r = 0;

    for (uint64_t i = 0; r == 0 && i < n_senders; i++) {
        uint64_t first = i * ITEMS_PER_SENDER + 1, last = (i + 1) * ITEMS_PER_SENDER;

        senders[i].batch = batch;
        r = submit_all(&senders[i], first, last < batch->n_items ? last : batch->n_items);
    }
    for (uint64_t i = 0; r == 0 && i < n_senders; i++)
        while (r == 0 && senders[i].n_waiting > 0)
            r = take(&senders[i], TROUPE_USEC_INFINITY);
    for (uint64_t i = 0; i < n_senders; i++)
        troupe_client_free(senders[i].client);
    return r;
}

static void tell(const struct batch *batch)
{
    printf("{\"items\": %llu, \"succeeded\": %llu, \"rejected\": %llu, \"cancelled\": %llu, "
           "\"dead\": %llu, \"busy\": %llu}\n",
           (unsigned long long)batch->n_items, (unsigned long long)batch->ends[TROUPE_SUCCEEDED],
           (unsigned long long)batch->ends[TROUPE_REJECTED],
           (unsigned long long)batch->ends[TROUPE_CANCELLED],
           (unsigned long long)batch->ends[TROUPE_DEAD], (unsigned long long)batch->n_busy);
}

static int parse(struct batch *batch, int argc, char *argv[])
{
    static const struct option options[] = {
        {"size", required_argument, NULL, 's'},        {"fail-every", required_argument, NULL, 'f'},
        {"crash-every", required_argument, NULL, 'c'}, {"hang-every", required_argument, NULL, 'h'},
        {"impatient", no_argument, NULL, 'i'},         {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        uint64_t *value = option == 's'   ? &batch->size
                          : option == 'f' ? &batch->fail_every
                          : option == 'c' ? &batch->crash_every
                          : option == 'h' ? &batch->hang_every
                                          : NULL;

        if (option == 'i')
            batch->options.wait_usec = 0;
        else if (!value || orchestrate_number(optarg, value) < 0)
            return -EINVAL;
    }
    if (optind + 2 != argc)
        return -EINVAL;
    batch->group = argv[optind];
    return orchestrate_number(argv[optind + 1], &batch->n_items);
}

int orchestrate_start(int argc, char *argv[])
{
    struct batch batch = {.size = 1 << 20, .options = TROUPE_JOB_DEFAULTS};
    struct sender *senders;
    uint64_t n_senders;
    int r;

    batch.options.wait_usec = TROUPE_USEC_INFINITY;
    if (parse(&batch, argc, argv) < 0) {
        fputs("orchestrate start GROUP N [--size=BYTES] [--fail-every=K] [--crash-every=K] "
              "[--hang-every=K] [--impatient]\n",
              stderr);
        return 2;
    }
    n_senders = (batch.n_items + ITEMS_PER_SENDER - 1) / ITEMS_PER_SENDER;
    senders = calloc(n_senders + 1, sizeof(*senders));
    r = senders ? run(&batch, senders, n_senders) : -ENOMEM;
    free(senders);
    if (r < 0) {
        fprintf(stderr, "orchestrate: %s\n", strerror(-r));
        return 1;
    }
    tell(&batch);
    return 0;
}

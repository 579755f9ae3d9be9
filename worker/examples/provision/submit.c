/* SPDX-License-Identifier: MIT */

/*
 * The client: reads orders from standard input, one a line, sends each to the cell of its key, and
 * prints their outcomes in the order of arrival, one a line. An order may have an "id", which
 * becomes the job's.
 */

#include "worker/examples/provision/order.h"
#include "worker/examples/provision/provision.h"
#include "worker/troupe.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define WINDOW  1000 /* orders whose outcome is awaited, at most */
#define KEY_MAX 255
/* The ring is full, or the supervisor waits for room on our behalf: try again. */
#define FULL_USEC 1000

enum by {
    BY_CUSTOMER,
    BY_PRODUCT,
    BY_BOTH,
};

struct submission {
    struct troupe_client *client;
    uint64_t group;
    enum by by;
    uint64_t n_lines, n_waiting, n_failed;
};

static int print(struct submission *submission, json_t *outcome, bool success)
{
    submission->n_failed += !success;
    if (!outcome)
        return -ENOMEM;
    (void)json_dumpf(outcome, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(outcome);
    return 0;
}

static int print_refusal(struct submission *submission, uint64_t line, const char *why)
{
    return print(submission, json_pack("{s:I, s:s}", "line", (json_int_t)line, "refused", why),
                 false);
}

static int print_end(struct submission *submission, const struct troupe_result *result)
{
    json_t *outcome = NULL;

    if (result->error < 0)
        return print_refusal(submission, result->cookie, strerror(-result->error));
    if (result->end == TROUPE_SUCCEEDED || result->end == TROUPE_REJECTED)
        outcome = json_loadb(result->data, result->size, 0, NULL);
    if (!outcome)
        outcome = json_pack("{s:s}", "reason", result->reason);
    json_object_set_new(outcome, "id", json_string(result->id));
    json_object_set_new(outcome, "end", json_string(troupe_end_name(result->end)));
    json_object_set_new(outcome, "attempts", json_integer(result->attempts));
    return print(submission, outcome, result->end == TROUPE_SUCCEEDED);
}

/* Takes the next outcome, if there is one within that time. */
static int take(struct submission *submission, uint64_t timeout_usec)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = troupe_client_next(submission->client, &result, timeout_usec);

    if (r < 0)
        return r == -EAGAIN || r == -EINTR ? 0 : r;
    submission->n_waiting--;
    r = print_end(submission, &result);
    troupe_result_release(&result);
    return r;
}

static int make_key(const struct submission *submission, const struct order *order, char *key)
{
    int n = submission->by == BY_BOTH
                ? snprintf(key, KEY_MAX + 1, "%s:%s", order->customer, order->product)
                : snprintf(key, KEY_MAX + 1, "%s",
                           submission->by == BY_PRODUCT ? order->product : order->customer);

    return n > KEY_MAX ? -EMSGSIZE : n;
}

static int send_order(struct submission *submission, const struct order *order, const char *line,
                      size_t size)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    char key[KEY_MAX + 1];
    int r = make_key(submission, order, key);

    if (r < 0)
        return r;
    options.id = json_string_value(json_object_get(order->root, "id"));
    options.key = key;
    options.key_size = (size_t)r;
    options.wait_usec = TROUPE_USEC_INFINITY;
    for (;;) {
        r = troupe_client_submit(submission->client, submission->group, &options, line, size,
                                 submission->n_lines);
        if (r == 0)
            submission->n_waiting++;
        if (r != -EAGAIN)
            return r;
        r = take(submission, FULL_USEC);
        if (r < 0)
            return r;
    }
}

static int submit_line(struct submission *submission, const char *line, size_t size)
{
    struct order order;
    const char *problem;
    int r = order_parse(&order, line, size, &problem);

    submission->n_lines++;
    if (r == 0) {
        problem = "its id, customer or product is malformed";
        r = send_order(submission, &order, line, size);
    }
    order_deinit(&order);
    if (r == -EINVAL || r == -EMSGSIZE)
        r = print_refusal(submission, submission->n_lines, problem);
    while (r == 0 && submission->n_waiting >= WINDOW)
        r = take(submission, TROUPE_USEC_INFINITY);
    return r;
}

static int run(struct submission *submission, const char *group)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    int r = troupe_client_connect(&submission->client, NULL);

    if (r == 0)
        r = troupe_client_group(submission->client, group, &submission->group);
    while (r == 0 && (size = getline(&line, &room, stdin)) > 0) {
        r = submit_line(submission, line, (size_t)size);
        troupe_client_flush(submission->client);
    }
    while (r == 0 && submission->n_waiting > 0)
        r = take(submission, TROUPE_USEC_INFINITY);
    free(line);
    troupe_client_free(submission->client);
    return r;
}

static int parse(struct submission *submission, int argc, char *argv[])
{
    static const char *const words[] = {"customer", "product", "both"};
    static const struct option options[] = {{"by", required_argument, NULL, 'b'},
                                            {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        int by = BY_BOTH;

        if (option != 'b')
            return -EINVAL;
        while (by >= 0 && strcmp(optarg, words[by]) != 0)
            by--;
        if (by < 0)
            return -EINVAL;
        submission->by = (enum by)by;
    }
    return optind + 1 == argc ? 0 : -EINVAL;
}

int provision_submit(int argc, char *argv[])
{
    struct submission submission = {0};
    int r;

    if (parse(&submission, argc, argv) < 0) {
        fputs("provision submit [--by=customer|product|both] GROUP\n", stderr);
        return 2;
    }
    r = run(&submission, argv[optind]);
    if (r < 0)
        fprintf(stderr, "provision: %s\n", strerror(-r));
    return r < 0 || submission.n_failed > 0;
}

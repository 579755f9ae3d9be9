/* SPDX-License-Identifier: MIT */
/*
 * client SOCKET COMMAND …: a client with rings. Prints errors as numbers, one a line.
 *
 *   cancel|withdraw|wait ID…  the error, or the number of the end of a job that is awaited
 *   why ID…                   the names of the end and the cause
 *   create GROUP ID…          creates jobs
 *   keep GROUP ID SCRIPT [keep|leave]
 *                             submits a job and prints the error, or the number of its end; "keep":
 *                             its result is kept as well; "leave": ends once the job is submitted
 *   large GROUP SIZE          sends a payload of that size and compares the worker's sum of it,
 * then requests a result of that size and checks every byte; prints "ok" push GROUP N SIZE
 * WAIT_USEC creates N jobs of SIZE bytes, one after the other, each of which waits for room (-1:
 * without limit); prints the counts as a JSON object recall GROUP NAME ID…     submits three jobs
 * that wait for room without limit, the last with the id NAME (unless "-"), then cancels each ID
 *   turns GROUP               submits a job for each line of standard input and waits for its end
 */
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_USEC 60000000

static struct troupe_client *client;
static uint64_t group;

static int print_error(int r)
{
    printf("%d\n", -r);
    fflush(stdout);
    return 0;
}

/* The next result: `r` is the error of what asked for it. */
static int print_end(int r)
{
    struct troupe_result result = TROUPE_RESULT_INIT;

    if (r == 0)
        r = troupe_client_next(client, &result, LIMIT_USEC);
    if (r == 0)
        r = result.error;
    printf("%d\n", r < 0 ? -r : (int)result.end);
    fflush(stdout);
    troupe_result_release(&result);
    return 0;
}

static int cancel(const char *id)
{
    return print_error(troupe_client_cancel(client, id));
}

/* Waits until it was handled: requests are in order, and this one is answered. */
static int withdraw(const char *id)
{
    int r = troupe_client_withdraw(client, id);

    (void)troupe_client_cancel(client, "no-job-has-this-id");
    return print_error(r);
}

/* Without the answer. */
static int leave(const char *id)
{
    int r;

    while ((r = troupe_client_abandon(client, id)) == -EAGAIN)
        continue;
    return r;
}

static int await(const char *id)
{
    return print_end(troupe_client_wait(client, id, 0));
}

static int why(const char *id)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = troupe_client_wait(client, id, 0);

    if (r == 0)
        r = troupe_client_next(client, &result, LIMIT_USEC);
    if (r == 0)
        printf("%s/%s\n", troupe_end_name(result.end), troupe_cause_name(result.cause));
    troupe_result_release(&result);
    return r;
}

static int create(char **argv)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;

    for (; *argv; argv++) {
        options.id = *argv;
        puts("begins");
        fflush(stdout);
        print_error(troupe_client_create(client, group, &options, "echo", 4, NULL));
    }
    return 0;
}

static int keep(char **argv)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;

    options.id = argv[0];
    options.keep_result = argv[2] != NULL;
    int r = troupe_client_submit(client, group, &options, argv[1], strlen(argv[1]), 0);
    if (r == 0 && argv[2] && strcmp(argv[2], "vanish") == 0) {
        troupe_client_flush(client);
        _exit(0);
    }
    if (r == 0 && argv[2] && strcmp(argv[2], "leave") == 0) {
        /* The answer to this shows that the supervisor has read the submission. */
        r = troupe_client_group(client, argv[-1], &group);
        _exit(r < 0); /* without a farewell */
    }
    return print_end(r);
}

static int there(size_t size)
{
    static const char command[] = "sum\n\n";
    struct troupe_result result = TROUPE_RESULT_INIT;
    unsigned char *data = malloc(size);
    uint64_t hash = UINT64_C(14695981039346656037);
    char expected[64];

    if (!data)
        return -ENOMEM;
    for (size_t i = 0; i < size; i++)
        data[i] = (unsigned char)(i * 7);
    memcpy(data, command, sizeof(command) - 1);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ data[i]) * UINT64_C(1099511628211);
    int n = snprintf(expected, sizeof(expected), "%zu %016llx", size, (unsigned long long)hash);
    int r = troupe_client_do(client, group, NULL, data, size, &result);
    free(data);
    if (r < 0)
        return r;
    if (result.end != TROUPE_SUCCEEDED || result.size != (size_t)n ||
        memcmp(result.data, expected, result.size) != 0)
        r = -EBADMSG;
    troupe_result_release(&result);
    return r;
}

static int back(size_t size)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    char command[64];
    int n = snprintf(command, sizeof(command), "blob %zu", size), r;

    r = troupe_client_do(client, group, NULL, command, (size_t)n, &result);
    if (r < 0)
        return r;
    if (result.end != TROUPE_SUCCEEDED || result.size != size)
        r = -EBADMSG;
    for (size_t i = 0; r == 0 && i < size; i++)
        if (((const unsigned char *)result.data)[i] != i % 251)
            r = -EBADMSG;
    troupe_result_release(&result);
    return r;
}

static int large(char **argv)
{
    const size_t size = strtoul(argv[0], NULL, 10);
    int r = there(size);

    if (r == 0)
        r = back(size);
    if (r == 0)
        puts("ok");
    return r;
}

static int push(char **argv)
{
    const unsigned long n = strtoul(argv[0], NULL, 10), size = strtoul(argv[1], NULL, 10);
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    unsigned long accepted = 0, busy = 0, others = 0;
    char *payload = calloc(1, size + 1);
    int r = 0;

    if (!payload)
        return -ENOMEM;
    options.wait_usec = (uint64_t)strtoll(argv[2], NULL, 10);
    for (unsigned long i = 0; i < n && r != -EPIPE; i++) {
        r = troupe_client_create(client, group, &options, payload, size, NULL);
        accepted += r == 0;
        busy += r == -EBUSY;
        others += r < 0 && r != -EBUSY;
    }
    free(payload);
    printf("{\"accepted\": %lu, \"busy\": %lu, \"others\": %lu}\n", accepted, busy, others);
    return 0;
}

static int recall(char **argv)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    int r = 0;

    options.wait_usec = TROUPE_USEC_INFINITY;
    for (uint64_t i = 0; i < 3 && r == 0; i++) {
        if (i == 2 && strcmp(argv[0], "-") != 0)
            options.id = argv[0];
        r = troupe_client_submit(client, group, &options, "echo", 4, i);
    }
    while (r == 0 && *++argv)
        r = cancel(*argv);
    return r;
}

static int turns(char **argv)
{
    int c;

    while ((c = getchar()) != EOF)
        if (c == '\n')
            print_end(troupe_client_submit(client, group, NULL, "echo", 4, 0));
    return 0;
}

static const struct command {
    const char *name;
    int (*of_group)(char **argv);
    int (*of_job)(const char *id);
} commands[] = {
    {"cancel", .of_job = cancel},   {"create", .of_group = create},   {"keep", .of_group = keep},
    {"large", .of_group = large},   {"leave", .of_job = leave},       {"push", .of_group = push},
    {"recall", .of_group = recall}, {"turns", .of_group = turns},     {"wait", .of_job = await},
    {"why", .of_job = why},         {"withdraw", .of_job = withdraw},
};

static int run(const struct command *command, char **argv)
{
    int r = 0;

    if (command->of_group) {
        r = troupe_client_group(client, argv[0], &group);
        return r == 0 ? command->of_group(argv + 1) : r;
    }
    for (; *argv && r == 0; argv++)
        r = command->of_job(*argv);
    return r;
}

int main(int argc, char **argv)
{
    int r = argc < 4 ? -EINVAL : troupe_client_connect(&client, argv[1]);

    for (size_t i = 0; r == 0 && i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(argv[2], commands[i].name) == 0)
            r = run(&commands[i], argv + 3);
    if (r < 0)
        fprintf(stderr, "%s\n", strerror(-r));
    troupe_client_free(client);
    return r != 0;
}

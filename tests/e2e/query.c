/* SPDX-License-Identifier: MIT */
/*
 * query SOCKET job|jobs|ended|letters|waits|job-waits|deaths|job-deaths|groups|events WHAT [COUNT]:
 * queries through libtroupe. Prints "begun", then a line for each record: id, state or reason,
 * attempt, and the record as JSON. "-" as WHAT means everything. Exits after COUNT records.
 */
#include "worker/troupe-query.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int begin(struct troupe_query *query, const char *kind, const char *what)
{
    if (strcmp(kind, "job") == 0)
        return troupe_query_job(query, what);
    if (strcmp(kind, "jobs") == 0)
        return troupe_query_jobs(query, what, 0);
    if (strcmp(kind, "ended") == 0)
        return troupe_query_jobs(query, what, TROUPE_QUERY_ENDED);
    if (strcmp(kind, "letters") == 0)
        return troupe_query_dead_letters(query, what);
    if (strcmp(kind, "waits") == 0)
        return troupe_query_waits(query, what);
    if (strcmp(kind, "job-waits") == 0)
        return troupe_query_job_waits(query, what);
    if (strcmp(kind, "deaths") == 0)
        return troupe_query_deaths(query, what, NULL);
    if (strcmp(kind, "job-deaths") == 0)
        return troupe_query_deaths(query, NULL, what);
    if (strcmp(kind, "groups") == 0)
        return troupe_query_groups(query);
    return troupe_query_events(query, what, TROUPE_QUERY_JOB_EVENTS);
}

static const char *text(struct troupe_query *query, const char *field, const char *other)
{
    const char *found = troupe_query_text(query, field);

    if (!found && other)
        found = troupe_query_text(query, other);
    return found ? found : "-";
}

static void print(struct troupe_query *query)
{
    size_t size;
    const char *json = troupe_query_json(query, &size);

    printf("%s %s %lld %.*s\n", text(query, "job", "id"), text(query, "state", "type"),
           (long long)troupe_query_number(query, "attempt", -1), (int)size, json);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    long count = argc > 4 ? strtol(argv[4], NULL, 10) : -1;
    struct troupe_query *query;
    int r;

    if (argc < 4)
        return 2;
    r = troupe_query_new(&query, argv[1]);
    if (r == 0) {
        r = begin(query, argv[2], strcmp(argv[3], "-") == 0 ? NULL : argv[3]);
        puts("begun");
        fflush(stdout);
        while (r == 0 && count-- != 0 && (r = troupe_query_next(query, UINT64_MAX)) == 1) {
            print(query);
            r = 0;
        }
        troupe_query_free(query);
    }
    if (r < 0)
        fprintf(stderr, "%s\n", strerrorname_np(-r));
    return r < 0;
}

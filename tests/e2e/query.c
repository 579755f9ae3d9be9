/* SPDX-License-Identifier: MIT */
/*
 * query SOCKET METHOD MEMBER PARAMETERS [COUNT]: calls a method through libtroupe. Prints "begun",
 * then a line for each record: id, state or reason, attempt, and the record as JSON. With COUNT,
 * the method sends further answers, and the program exits after so many records.
 */
#include "worker/troupe-query.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    long count = argc > 5 ? strtol(argv[5], NULL, 10) : -1;
    struct troupe_query *query;

    if (argc < 5)
        return 2;
    int r = troupe_query_new(&query, argv[1]);
    if (r == 0) {
        r = troupe_query_call(query, argv[2], argv[3], argv[4], argc > 5 ? TROUPE_QUERY_MORE : 0);
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

/* SPDX-License-Identifier: MIT */

/*
 * An example worker with a template: it finds all prime numbers up to LIMIT, which takes a moment,
 * and its jobs look them up. The payload is a number, the result "prime" or its smallest factor.
 *
 * With Template=slot the numbers are found once in each slot, and its workers are forked from that
 * process, so a worker that has crashed is replaced in milliseconds.
 */

#include "worker/troupe.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT 5000000u

static uint32_t *factors; /* the smallest one above 1 of each number; 0 = prime */

static int load(void)
{
    factors = calloc(LIMIT + 1, sizeof(*factors));
    if (!factors)
        return -ENOMEM;
    for (uint32_t n = 2; n <= LIMIT / n; n++)
        for (uint32_t m = n * n; factors[n] == 0 && m <= LIMIT; m += n)
            if (factors[m] == 0)
                factors[m] = n;
    return 0;
}

static int look_up(struct troupe_job *job, void *userdata)
{
    static const char problem[] = "want a number from 2 to 5000000";
    size_t size;
    const char *payload = troupe_job_payload(job, &size);
    char text[16] = "", *end;
    unsigned long n;

    (void)userdata;
    if (size < sizeof(text))
        memcpy(text, payload, size);
    n = strtoul(text, &end, 10);
    if (*end != '\0' || n < 2 || n > LIMIT)
        return troupe_job_reject(job, EINVAL, problem, strlen(problem));
    if (factors[n] == 0)
        return troupe_job_succeed(job, "prime", strlen("prime"));
    (void)snprintf(text, sizeof(text), "%u", factors[n]);
    return troupe_job_succeed(job, text, strlen(text));
}

int main(void)
{
    struct troupe_worker *worker;
    int r = load();

    if (r == 0)
        r = troupe_template_run(NULL); /* returns in each worker */
    if (r < 0)
        return r != -ESHUTDOWN;
    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    troupe_worker_on_job(worker, look_up, NULL);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}

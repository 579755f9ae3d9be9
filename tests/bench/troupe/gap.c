/* SPDX-License-Identifier: MIT */

/*
 * The longest time without an end that a client sees: gap SOCKET GROUP does one job after the other
 * and prints "ready" after the first, until SIGTERM. Then it prints one JSON object. A job whose
 * fate is unknown is done again.
 */

#include "tests/bench/load/load.h"
#include "tests/bench/load/samples.h"
#include "worker/troupe.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static volatile sig_atomic_t stopped;

static void stop(int signal)
{
    stopped = 1;
}

struct gap {
    struct troupe_client *client;
    uint64_t group;
    uint64_t last, longest; /* ns */
    uint64_t n_ended, n_again;
};

static int do_job(struct gap *gap)
{
    static const char data[64] = "gap";
    struct troupe_result result = TROUPE_RESULT_INIT;
    int r = troupe_client_do(gap->client, gap->group, NULL, data, sizeof(data), &result);

    if (r == -ECONNRESET) {
        gap->n_again++;
        return 0;
    }
    if (r == 0 && result.end != TROUPE_SUCCEEDED)
        r = -EBADMSG;
    troupe_result_release(&result);
    uint64_t now = samples_now();
    if (gap->n_ended > 0 && now - gap->last > gap->longest)
        gap->longest = now - gap->last;
    gap->last = now;
    if (r == 0 && gap->n_ended++ == 0)
        load_ready();
    return r;
}

int main(int argc, char **argv)
{
    struct gap gap = {0};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGTERM, stop);
    if (argc != 3) {
        fprintf(stderr, "usage: gap SOCKET GROUP\n");
        return 2;
    }
    int r = troupe_client_connect(&gap.client, argv[1]);
    if (r == 0)
        r = troupe_client_group(gap.client, argv[2], &gap.group);
    while (r == 0 && !stopped)
        r = do_job(&gap);
    if (r < 0) {
        fprintf(stderr, "gap: %s\n", strerror(-r));
        return 1;
    }
    printf("{\"gap_ms\": %.3f, \"ended\": %llu, \"again\": %llu}\n", (double)gap.longest / 1e6,
           (unsigned long long)gap.n_ended, (unsigned long long)gap.n_again);
    troupe_client_free(gap.client);
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/verbs/still.h"

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/show/pool.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <inttypes.h>

struct tally {
    uint64_t n;       /* workers */
    uint64_t n_late;  /* not yet in the wanted state */
    uint64_t n_hands; /* of these: with a job in hand */
};

static void count_workers(const json_t *owner, bool ends, struct tally *tally)
{
    const json_t *workers = json_object_get(owner, "workers");

    for (size_t i = 0; i < json_array_size(workers); i++) {
        const json_t *worker = json_array_get(workers, i);

        tally->n++;
        if (ends ? pool_is_down(worker) : pool_is_up(worker))
            continue;
        tally->n_late++;
        tally->n_hands += field_has(worker, "job");
    }
}

static struct tally count(const json_t *groups, bool ends)
{
    struct tally tally = {0};

    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *group = json_array_get(groups, i), *cells = json_object_get(group, "cells");

        count_workers(group, ends, &tally);
        for (size_t k = 0; k < json_array_size(cells); k++)
            count_workers(json_array_get(cells, k), ends, &tally);
    }
    return tally;
}

int still_under_way(struct invocation *invocation, const char *target, const char *doing, bool ends)
{
    json_auto_t *reply = NULL;
    struct tally tally;
    int r;

    r = call(invocation, CALL_SUPERVISOR "GetStatus", json_pack("{s:s}", "target", target), false,
             &reply);
    if (r != EXIT_OK)
        return r;
    tally = count(json_object_get(reply, "groups"), ends);
    if (tally.n_hands > 0)
        complain("%s: still %s: %s of %s ha%s a job in hand; it goes on", target, doing,
                 COUNT(tally.n_hands), COUNT(tally.n), tally.n_hands == 1 ? "s" : "ve");
    else
        complain("%s: still %s: %s of %s %s not %s yet; it goes on", target, doing,
                 COUNT(tally.n_late), COUNT(tally.n), tally.n_late == 1 ? "is" : "are",
                 ends ? "down" : "up");
    return EXIT_TIMEOUT;
}

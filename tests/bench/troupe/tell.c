/* SPDX-License-Identifier: MIT */

/*
 * Messages one way, worker -> supervisor -> worker:
 *
 *     tell listener    counts what it is told, and answers how much that was
 *     tell talker      its job, "COUNT BYTES": tells listener/0 as many messages, then asks it
 *
 * The job's result is one JSON object. Since messages arrive in the order in which they were sent,
 * the answer comes after all of them have been handled.
 */

#include "tests/bench/load/samples.h"
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int on_message(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    uint64_t *n = userdata;

    (*n)++;
    return TROUPE_HANDLED;
}

static int on_count(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    uint64_t *n = userdata, counted = *n;

    *n = 0;
    return troupe_message_reply(message, "counted", &counted, sizeof(counted));
}

/* Waits until all that was told before has been handled. */
static int ask(struct troupe_actor *actor, troupe_ref listener, uint64_t *ret_count)
{
    struct troupe_future *future;
    size_t size;
    int r = troupe_actor_ask(actor, listener, &future, "count");

    if (r < 0)
        return r;
    r = troupe_future_await(future, TROUPE_AWAIT_STASH);
    const void *data = troupe_future_payload(future, &size);
    if (r == 0 && size == sizeof(*ret_count))
        memcpy(ret_count, data, size);
    troupe_future_free(future);
    return r;
}

static int talk(struct troupe_actor *actor, uint64_t count, size_t size, double *ret_seconds)
{
    troupe_ref listener;
    uint64_t begin, counted = 0;
    char *data = calloc(1, size + 1);
    int r = data ? troupe_actor_lookup(actor, "listener/0", &listener) : -ENOMEM;

    if (r == 0)
        r = ask(actor, listener, &counted);
    begin = samples_now();
    for (uint64_t i = 0; r == 0 && i < count; i++)
        r = troupe_actor_tell(actor, listener, "message", .data = data, .size = size);
    if (r == 0)
        r = ask(actor, listener, &counted);
    *ret_seconds = (double)(samples_now() - begin) / 1e9;
    free(data);
    return r == 0 && counted != count ? -EBADMSG : r;
}

static int handle(struct troupe_job *job, void *userdata)
{
    unsigned long long count;
    size_t size;
    double seconds;
    char result[128];
    int r;

    if (sscanf(troupe_job_payload(job, &size), "%llu %zu", &count, &size) != 2)
        return -EINVAL;
    r = talk(troupe_worker_actor(troupe_job_worker(job)), count, size, &seconds);
    if (r < 0)
        return r;
    snprintf(result, sizeof(result), "{\"messages_per_s\": %.1f, \"bytes_per_s\": %.1f}",
             (double)count / seconds, (double)count * (double)size / seconds);
    return troupe_job_succeed(job, result, strlen(result));
}

int main(int argc, char **argv)
{
    struct troupe_worker *worker;
    uint64_t n = 0;
    int r = troupe_worker_new(&worker);

    if (r < 0)
        return troupe_worker_start_error(r);
    if (argc > 1 && strcmp(argv[1], "listener") == 0) {
        r = troupe_actor_on_message(troupe_worker_actor(worker), "message", on_message, &n);
        if (r == 0)
            r = troupe_actor_on_message(troupe_worker_actor(worker), "count", on_count, &n);
    } else {
        (void)troupe_worker_actor(worker);
        troupe_worker_on_job(worker, handle, NULL);
    }
    if (r == 0)
        r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}

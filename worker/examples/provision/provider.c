/* SPDX-License-Identifier: MIT */

/*
 * A provider: an actor that sets up its part of an order, and answers "provider.done" (properties)
 * or "provider.error" (text). With a desk, a person decides each time.
 */

#include "worker/examples/provision/desk.h"
#include "worker/examples/provision/journal.h"
#include "worker/examples/provision/order.h"
#include "worker/examples/provision/provision.h"
#include "worker/troupe.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct desk {
    const char *name, *path, *journal;
};

static int answer(struct troupe_message *message, const char *type, json_t *object)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    int r = text ? troupe_message_reply(message, type, text, strlen(text)) : -ENOMEM;

    free(text);
    json_decref(object);
    return r;
}

static int refuse(struct troupe_message *message, const char *text)
{
    return answer(message, "provider.error", json_pack("{s:s}", "text", text));
}

static int on_setup(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    const struct desk *desk = userdata;
    const char *data, *problem;
    char reason[200];
    struct order order;
    bool yes = true;
    size_t size;
    int r;

    (void)actor;
    data = troupe_message_payload(message, &size);
    r = order_parse(&order, data, size, &problem);
    if (r == 0) {
        journal_write(desk->journal, "%s asked %s %s", desk->name, order.customer, order.product);
        if (desk->path)
            r = desk_decide(desk->path, &yes, reason, sizeof(reason));
    }
    order_deinit(&order);
    if (r == -EINVAL)
        return refuse(message, problem);
    if (r < 0)
        return r;
    if (!yes)
        return refuse(message, reason);
    return answer(message, "provider.done",
                  json_pack("{s:{s:s}}", "properties", "provider", desk->name));
}

static int parse(struct desk *desk, int argc, char *argv[])
{
    static const struct option options[] = {{"journal", required_argument, NULL, 'j'},
                                            {"desk", required_argument, NULL, 'd'},
                                            {NULL, 0, NULL, 0}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'j')
            desk->journal = optarg;
        else if (option == 'd')
            desk->path = optarg;
        else
            return -EINVAL;
    }
    return optind == argc ? 0 : -EINVAL;
}

int provision_provider(int argc, char *argv[])
{
    struct troupe_worker *worker;
    struct desk desk = {0};
    int r;

    if (parse(&desk, argc, argv) < 0) {
        fputs("provision provider [--journal=FILE] [--desk=FIFO]\n", stderr);
        return 2;
    }
    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    desk.name = troupe_worker_name(worker);
    r = troupe_actor_on_message(troupe_worker_actor(worker), "setup", on_setup, &desk);
    if (r == 0)
        r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * A program that was compiled with an older header and runs with the current library. `old-layout
 * SOCKET GROUP` does jobs, tells itself messages, and prints the results.
 */
#include "tests/e2e/old/troupe.h"
#include <stdio.h>
#include <string.h>

/* The library must not write behind the struct. */
struct guarded {
    struct troupe_result result;
    unsigned char guard[64];
};

static int print(const char *what, int r, struct guarded *guarded)
{
    for (size_t i = 0; i < sizeof(guarded->guard); i++)
        if (guarded->guard[i] != 0xa5)
            return puts("the library wrote behind the result"), 1;
    printf("%s %d %d %s %.*s\n", what, r, (int)guarded->result.end, guarded->result.id,
           (int)guarded->result.size, (const char *)guarded->result.data);
    troupe_result_release(&guarded->result);
    return 0;
}

static int do_jobs(struct troupe_client *client, uint64_t group)
{
    struct troupe_job_options options = {sizeof(options), "by-do", NULL, 0, 0, 0, 0, 0};
    struct guarded guarded = {.result.struct_size = sizeof(guarded.result)};

    memset(guarded.guard, 0xa5, sizeof(guarded.guard));
    int r = troupe_client_do(client, group, &options, "echo one", 8, &guarded.result);
    if (print("do", r, &guarded) != 0)
        return 1;
    options.id = "by-submit";
    r = troupe_client_submit(client, group, &options, "echo two", 8, 7);
    if (r == 0)
        r = troupe_client_next(client, &guarded.result, TROUPE_USEC_INFINITY);
    return print("next", r, &guarded);
}

static int on_message(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    size_t size;
    const char *text = troupe_message_payload(message, &size);

    printf("%s %s\n", troupe_message_type(message), text);
    ++*(int *)userdata;
    return 0;
}

static int tell_itself(struct troupe_client *client)
{
    struct troupe_message_options options = {.struct_size = sizeof(options), .text = "hello"};
    struct troupe_actor *actor = troupe_client_actor(client);
    troupe_ref self;
    int r, n = 0;

    r = troupe_actor_on_message(actor, "", on_message, &n);
    if (r == 0)
        r = troupe_actor_self(actor, &self);
    options.type = "told";
    if (r == 0)
        r = troupe_actor_tell_with(actor, self, &options);
    options.type = "later";
    if (r == 0)
        r = troupe_actor_timer_after_with(actor, self, 1000, NULL, &options);
    while (r >= 0 && n < 2)
        r = troupe_actor_turn(actor, TROUPE_USEC_INFINITY);
    return r;
}

int main(int argc, char **argv)
{
    struct troupe_client *client;
    uint64_t group;

    if (argc != 3 || troupe_client_connect(&client, argv[1]) < 0)
        return 2;
    int r = troupe_client_group(client, argv[2], &group);
    if (r == 0)
        r = do_jobs(client, group);
    if (r == 0)
        r = tell_itself(client);
    troupe_client_free(client);
    return r < 0;
}

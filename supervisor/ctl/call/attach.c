/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/attach.h"

#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* libtroupe only says that the group does not exist; the socket also suggests a similar name. */
static int explain_group(struct invocation *invocation, const char *group, int error)
{
    json_auto_t *reply = NULL;
    int r = call(invocation, CALL_SUPERVISOR "GetStatus", json_pack("{s:s}", "target", group),
                 false, &reply);

    return r == EXIT_OK ? explain_refused("", group, error, "") : r;
}

/* It has ended before it answered, or is about to be followed by another one. */
static bool is_lost(int error)
{
    return error == -EPIPE || error == -ECONNRESET || error == -ERESTART;
}

/* Returns an exit status, or -EAGAIN if a later attempt may succeed: `helps` tells after which
 * errors of troupe_client_connect(). */
static int attach(struct invocation *invocation, const char *group,
                  struct attachment_client *client, bool (*helps)(int error))
{
    int r = troupe_client_connect(&client->client, invocation_socket(invocation));

    if (r < 0)
        return helps(r) ? -EAGAIN : explain_connect(invocation_socket(invocation), r);
    r = troupe_client_group(client->client, group, &client->group);
    if (r == 0)
        return EXIT_OK;
    troupe_client_free(client->client);
    client->client = NULL;
    return is_lost(r) ? -EAGAIN : explain_group(invocation, group, r);
}

int attach_again(struct invocation *invocation, const char *group, struct attachment_client *client,
                 struct reconnect *reconnect)
{
    int r;

    troupe_client_free(client->client);
    client->client = NULL;
    do
        r = reconnect_wait(reconnect) ? attach(invocation, group, client, reconnect_helps)
                                      : EXIT_UNREACHABLE;
    while (r == -EAGAIN);
    if (r == EXIT_OK)
        reconnect_done(reconnect);
    return r;
}

int attach_group(struct invocation *invocation, const char *group, struct attachment_client *ret,
                 struct reconnect *reconnect)
{
    int r;

    ret->client = NULL;
    r = attach(invocation, group, ret, is_lost);
    return r == -EAGAIN ? attach_again(invocation, group, ret, reconnect) : r;
}

static int ask_once(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    struct attach_durability *durability = userdata;
    const char *group = invocation_operand(invocation, 0);
    struct varlink_reply reply;
    int r = call_any(invocation, CALL_SUPERVISOR "GetStatus",
                     json_pack("{s:s, s:b}", "target", group, "brief", 1), false, &reply);
    const json_t *known;

    if (r != EXIT_OK)
        return r;
    reconnect_done(reconnect);
    known = json_object_get(json_array_get(json_object_get(reply.parameters, "groups"), 0),
                            "ids_known_usec");
    durability->durable = json_is_integer(known);
    durability->ids_known = (usec_t)json_integer_value(known);
    varlink_reply_deinit(&reply);
    return EXIT_OK;
}

int attach_ask_durability(struct invocation *invocation, struct attach_durability *ret)
{
    int r;

    *ret = (struct attach_durability){0};
    r = reconnect_run(invocation, RECONNECT_DEFAULT, ask_once, ret);
    varlink_client_deinit(&invocation->client);
    return r;
}

struct attach_ids attach_ids_make(void)
{
    /* Used if the kernel has no random numbers yet; unique enough. */
    struct attach_ids ids = {.high = (uint64_t)getpid(), .low = clock_realtime()};

    (void)!getrandom(&ids, sizeof(ids), GRND_NONBLOCK);
    return ids;
}

const char *attach_ids_format(const struct attach_ids *ids, uint64_t n, char text[TROUPE_ID_SIZE])
{
    snprintf(text, TROUPE_ID_SIZE, "%016" PRIx64 "%016" PRIx64, ids->high, ids->low + n);
    return text;
}

/* Returns the index of the word; 0 = none. A word that the library refuses becomes a number that it
 * refuses. */
static unsigned number_of(const char *word, const char *const *words)
{
    unsigned i = 0;

    while (word && words[i] && strcmp(word, words[i]) != 0)
        i++;
    return i;
}

struct troupe_job_options attach_job_options(const struct options *options)
{
    static const char *const conflicts[] = {"", "existing", "reject", "replace", "requeue", NULL};
    static const char *const conditions[] = {"success", "failure", "end", NULL};
    struct troupe_job_options job = options->job;

    job.key_size = job.key ? strlen(job.key) : 0;
    job.unique_size = job.unique ? strlen(job.unique) : 0;
    job.on_conflict = (enum troupe_conflict)number_of(options->on_conflict, conflicts);
    job.condition = (enum troupe_condition)number_of(options->condition, conditions);
    job.priority = (int)options->priority;
    job.cost = (unsigned)options->cost;
    return job;
}

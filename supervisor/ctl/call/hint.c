/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/hint.h"

#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show-wait.h"
#include <poll.h>
#include <string.h>

/* Before it asks for the first time; each further pause is twice as long. */
#define FIRST_PAUSE (2 * USEC_PER_SEC)
#define TIMEOUT     USEC_PER_SEC

struct hint hint_make(const struct invocation *invocation)
{
    struct hint hint = {.invocation = invocation, .at = USEC_INFINITY};

    if (!invocation->options.quiet) {
        hint.at = 0;
        hint_put_off(&hint);
    }
    return hint;
}

void hint_put_off(struct hint *hint)
{
    if (hint->at == USEC_INFINITY)
        return;
    hint->pause = FIRST_PAUSE;
    hint->at = clock_deadline(hint->pause);
}

bool hint_due(const struct hint *hint)
{
    return hint->at != USEC_INFINITY && clock_now() >= hint->at;
}

/* Calls over a connection of its own: the other one awaits a reply. NULL = there is no answer. */
static json_t *explain(const struct hint *hint, const char *id)
{
    struct varlink_reply reply = VARLINK_REPLY_NULL;
    struct varlink_client client;
    json_t *waits = NULL;

    if (varlink_client_init(&client, invocation_socket(hint->invocation), TIMEOUT) < 0)
        return NULL;
    if (varlink_client_send(&client, CALL_JOBS "Explain", json_pack("{s:s}", "id", id), false) ==
            0 &&
        varlink_client_receive(&client, &reply) == 0)
        waits = json_incref(json_object_get(reply.parameters, "waits"));
    varlink_reply_deinit(&reply);
    varlink_client_deinit(&client);
    return waits;
}

/* Returns whether that is an obstacle. */
static bool tell(const json_t *wait)
{
    if (!show_wait_is_obstacle(wait))
        return false;
    fputs("troupectl: still waiting: ", stderr);
    show_wait(stderr, wait);
    return true;
}

void hint_ask(struct hint *hint, const char *id)
{
    json_auto_t *waits = explain(hint, id);
    bool told = false;

    for (size_t i = 0; !told && i < json_array_size(waits); i++)
        told = tell(json_array_get(waits, i));
    hint->pause *= 2;
    hint->at = told ? USEC_INFINITY : clock_deadline(hint->pause);
}

void hint_await(struct hint *hint, const char *id, int fd, usec_t deadline)
{
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    int r;

    do {
        const usec_t until = hint->at < deadline ? hint->at : deadline;
        const struct timespec left = usec_to_timespec(clock_left(until));

        r = ppoll(&poller, 1, until == USEC_INFINITY ? NULL : &left, NULL);
        if (r == 0 && hint_due(hint))
            hint_ask(hint, id);
    } while (r == 0 && clock_now() < deadline);
}

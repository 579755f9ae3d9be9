/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/hint.h"

#include "shared/base/cleanup.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/show/show.h"

/* Before it asks for the first time; each further pause is twice as long. */
#define FIRST_PAUSE (2 * USEC_PER_SEC)

#define ASIDE_TIMEOUT USEC_PER_SEC

/* Asks over a connection of its own, as another call awaits its reply. Returns the parameters of
 * the reply, which may be an error, or NULL. */
static json_t *explain_job(const struct invocation *invocation, const char *id)
{
    json_t *parameters = json_pack("{s:s}", "id", id);
    struct varlink_reply reply = VARLINK_REPLY_NULL;
    struct varlink_client client;
    json_t *answer = NULL;

    if (varlink_client_init(&client, invocation_socket(invocation), ASIDE_TIMEOUT) < 0) {
        json_decref(parameters);
        return NULL;
    }
    if (varlink_client_send(&client, CALL_JOBS "Explain", parameters, false) == 0 &&
        varlink_client_receive(&client, &reply) == 0)
        answer = json_incref(reply.parameters);
    varlink_reply_deinit(&reply);
    varlink_client_deinit(&client);
    return answer;
}

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

/* Returns whether that is an obstacle. */
static bool tell(const json_t *wait)
{
    _cleanup_free_ char *sentence = show_wait_is_obstacle(wait) ? show_wait(wait) : NULL;

    if (sentence)
        fprintf(stderr, "troupectl: still waiting: %s\n", sentence);
    return sentence;
}

void hint_ask(struct hint *hint, const char *id)
{
    json_auto_t *answer = explain_job(hint->invocation, id);
    const json_t *waits = json_object_get(answer, "waits");
    bool told = false;

    for (size_t i = 0; !told && i < json_array_size(waits); i++)
        told = tell(json_array_get(waits, i));
    hint->pause *= 2;
    hint->at = told ? USEC_INFINITY : clock_deadline(hint->pause);
}

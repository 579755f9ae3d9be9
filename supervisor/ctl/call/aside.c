/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/aside.h"

#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/command/invocation.h"

#define TIMEOUT USEC_PER_SEC

json_t *aside_call(const struct invocation *invocation, const char *method, json_t *parameters)
{
    struct varlink_reply reply = VARLINK_REPLY_NULL;
    struct varlink_client client;
    json_t *answer = NULL;

    if (varlink_client_init(&client, invocation_socket(invocation), TIMEOUT) < 0) {
        json_decref(parameters);
        return NULL;
    }
    if (varlink_client_send(&client, method, parameters, false) == 0 &&
        varlink_client_receive(&client, &reply) == 0)
        answer = json_incref(reply.parameters);
    varlink_reply_deinit(&reply);
    varlink_client_deinit(&client);
    return answer;
}

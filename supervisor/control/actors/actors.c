/* SPDX-License-Identifier: MIT */

#include "supervisor/control/actors/actors.h"

#include "supervisor/control/control-context.h"
#include "supervisor/control/jobs/submit.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/message/actor-name.h"
#include <errno.h>
#include <string.h>

bool control_take_topic(struct request *request, const char *type, const struct varlink_bytes *key,
                        struct topic *ret)
{
    const char *given = type ? type : "";

    if (!topic_type_valid(given, strlen(given)))
        return request_refuse(request, "type", CONTROL_TYPE_ALLOWED);
    *ret = (struct topic){.type = given,
                          .type_size = (uint32_t)strlen(given),
                          .key = key->data,
                          .key_size = (uint32_t)key->size};
    return true;
}

/* Why a group is not an actor; NULL = there is no such group, or it is one. */
static const char *why_no_actor(const struct group *group)
{
    if (!group || group->config->type == CONFIG_ACTOR)
        return NULL;
    return "it is a plain service (Type=service), which takes neither jobs nor messages";
}

void control_refuse_actor(struct request *request, const char *name)
{
    struct registry *registry = request->context->registry;
    const char *reason = why_no_actor(registry_find(registry, name));
    struct reply *reply = request_begin_error(request, "NoSuchActor");

    reply_string(reply, "name", name);
    reply_string_if(reply, "nearest", reason ? NULL : registry_nearest(registry, name));
    reply_string_if(reply, "reason", reason);
    request_end(request);
}

struct actor *control_find_actor(struct request *request, const char *name)
{
    struct actor *actor = actor_by_address(request->context->messages, name);

    if (!actor)
        control_refuse_actor(request, name);
    return actor;
}

struct actor *control_find_exchange(struct request *request, const char *name)
{
    struct actor *actor = actor_by_name(request->context->messages, name);

    if (actor && actor_exchange(actor))
        return actor;
    request_fail_string(request, "NoSuchExchange", "name", name);
    return NULL;
}

static const struct routing_refusal {
    const char *error, *field; /* of io.troupe.Actors; NULL = the reply has other fields */
    const char *text;
} ROUTING_REFUSALS[] = {
    [ROUTER_E_GONE] = {NULL, NULL, "the recipient is gone"},
    [ROUTER_E_FULL] = {"MailboxFull", "name", "the recipient's mailbox is full"},
    [ROUTER_E_NO_MATCH] = {"NoMatch", "exchange", "no subscription of the exchange matches it"},
    [ROUTER_E_NO_KEY] = {NULL, NULL,
                         "the group has Cells=by-key, and the message has no key that can name a "
                         "cell"},
    [ROUTER_E_CELLS] = {NULL, NULL, "the group has as many cells as CellsMax= allows"},
    [ROUTER_E_MEMORY] = {NULL, NULL, "the supervisor is out of memory or descriptors"},
};

const char *control_routing_text(int result)
{
    return result > 0 ? ROUTING_REFUSALS[result].text : strerror(-result);
}

void control_refuse_routing(struct request *request, const char *to, int result)
{
    const struct group *group = registry_group_of(request->context->registry, to);
    struct reply *reply;

    if (result == ROUTER_E_GONE) {
        control_refuse_actor(request, to);
    } else if (result == ROUTER_E_NO_KEY) {
        request_refuse(request, "key", CONTROL_KEY_ALLOWED);
    } else if (result == ROUTER_E_CELLS && !group) {
        request_refuse(request, "key",
                       "that of a cell: the group behind the exchange has as many as CellsMax= "
                       "allows");
    } else if (result == ROUTER_E_CELLS) {
        reply = request_begin_error(request, "TooManyCells");
        control_report_cells(reply, group);
        request_end(request);
    } else if (result < 0 || result == ROUTER_E_MEMORY) {
        request_internal(request, result < 0 ? result : -ENOMEM);
    } else {
        request_fail_string(request, ROUTING_REFUSALS[result].error, ROUTING_REFUSALS[result].field,
                            to);
    }
}

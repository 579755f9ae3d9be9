/* SPDX-License-Identifier: MIT */

#include "supervisor/control/actors/actors.h"

#include "supervisor/control/actors/report-actor.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/jobs/submit.h"
#include "supervisor/control/list.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/message-log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool control_take_topic(struct request *request, const char *type, const struct varlink_bytes *key,
                        struct topic *ret)
{
    const char *given = type ? type : "";

    if (!topic_type_valid(given, strlen(given)))
        return control_refuse_option(request, "type", CONTROL_TYPE_ALLOWED);
    if (key->size > TOPIC_KEY_MAX)
        return control_refuse_option(request, "key", "at most 255 bytes");
    *ret = (struct topic){.type = given,
                          .type_size = (uint32_t)strlen(given),
                          .key = key->data,
                          .key_size = (uint32_t)key->size};
    return true;
}

/* Why a group of that name is no actor; NULL = there is no such group, or it should be one. */
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

void control_refuse_routing(struct request *request, const char *to, int result)
{
    struct reply *reply;

    switch (result) {
    case ROUTER_E_GONE:
        control_refuse_actor(request, to);
        break;
    case ROUTER_E_FULL:
        request_fail_string(request, "MailboxFull", "name", to);
        break;
    case ROUTER_E_NO_MATCH:
        request_fail_string(request, "NoMatch", "exchange", to);
        break;
    case ROUTER_E_NO_KEY:
        control_refuse_option(request, "key", CONTROL_KEY_ALLOWED);
        break;
    case ROUTER_E_CELLS:
        reply = request_begin_error(request, "TooManyCells");
        control_report_cells(reply, registry_group_of(request->context->registry, to));
        request_end(request);
        break;
    default:
        request_internal(request, result == ROUTER_E_MEMORY ? -ENOMEM : result);
    }
}

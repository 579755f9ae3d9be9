/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: Tell and Ask. */

#include "supervisor/control/actors/actors.h"

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-actors.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/message/message-context.h"
#include <errno.h>
#include <string.h>

void control_message_deinit(struct control_message *message)
{
    payload_deinit(&message->payload);
}

/* Refuses messages to workers of troupe-exec, which accept only jobs. */
static bool refuse_commands(struct request *request, const struct actor *actor)
{
    const struct group *group;
    const char *program;

    if (actor_exchange(actor) || actor_is(actor, ACTOR_CLIENT))
        return false;
    group = registry_group_of(request->context->registry, actor->name);
    program = group && group->config->exec_start ? group->config->exec_start[0] : NULL;
    if (!program || strcmp(basename(program), "troupe-exec") != 0)
        return false;
    request_refuse(request, "to",
                   "an actor that takes messages; a group of troupe-exec takes only jobs: "
                   "create a job instead, with a delay or a date if it is for later");
    return true;
}

bool control_take_message(struct request *request, struct control_message *ret)
{
    _cleanup_(control_payload_deinit)
    struct control_payload payload = CONTROL_PAYLOAD_NULL;

    if (!control_take_topic(request, &ret->topic) || !control_take_payload(request, &payload))
        return false;
    ret->actor = control_find_actor(request, request_string(request, "to"));
    if (!ret->actor || refuse_commands(request, ret->actor))
        return false;
    if (payload_set(&ret->payload, payload.data, payload.size) < 0) {
        request_internal(request, -ENOMEM);
        return false;
    }
    return true;
}

static void tell(struct request *request)
{
    _cleanup_(control_message_deinit)
    struct control_message message = CONTROL_MESSAGE_NULL;
    int r;

    if (!control_take_message(request, &message))
        return;
    r = router_tell(request->context->messages, &(struct router_message){
                                                    .to = message.actor->reference,
                                                    .topic = message.topic,
                                                    .payload = &message.payload,
                                                });
    if (r == 0)
        request_done(request);
    else
        control_refuse_routing(request, request_string(request, "to"), r);
}

/* request->state: the open ask; NULL once it has ended. */
static void drop_ask(struct request *request)
{
    if (request->state)
        ask_end(request->state);
}

static void answer_reply(struct request *request, const struct envelope *envelope)
{
    struct reply *reply = request_begin(request);
    int r;

    reply_string(reply, "from", actor_name_of(request->context->messages, envelope->sender));
    reply_text(reply, "type", envelope->topic.type, envelope->topic.type_size);
    r = report_payload(reply, "payload", &envelope->payload, REPORT_SINGLE_MAX);
    if (r == -EMSGSIZE)
        request_fail_int(request, "TooLarge", "maximum", REPORT_SINGLE_MAX);
    else if (r < 0)
        request_internal(request, r);
    else
        request_end(request);
}

static void on_done(void *userdata, const struct envelope *envelope, int error, const char *reason)
{
    struct request *request = userdata;
    const char *code = strerrorname_np(error);
    struct reply *reply;

    request->state = NULL;
    if (envelope) {
        answer_reply(request, envelope);
    } else if (error == ETIMEDOUT) {
        request_fail(request, "TimedOut");
    } else {
        reply = request_begin_error(request, "Failed");
        reply_string(reply, "code", code ? code : "EIO");
        reply_string(reply, "reason", reason ? reason : "");
        request_end(request);
    }
}

static void ask(struct request *request)
{
    const char *reply_type = request_string(request, "reply_type");
    _cleanup_(control_message_deinit)
    struct control_message message = CONTROL_MESSAGE_NULL;
    struct control_context *context = request->context;
    struct router_message wanted;
    uint64_t handle;
    int r;

    if (!reply_type)
        reply_type = "";
    if (!topic_type_valid(reply_type, strlen(reply_type))) {
        request_refuse(request, "reply_type", CONTROL_TYPE_ALLOWED);
        return;
    }
    if (!control_take_message(request, &message))
        return;
    wanted = (struct router_message){
        .to = message.actor->reference, .topic = message.topic, .payload = &message.payload};
    if (request_is_oneway(request)) {
        (void)router_tell(context->messages, &wanted);
        request_done(request);
        return;
    }
    r = router_ask(context->messages, &wanted, reply_type,
                   varlink_usec(&request->parameters, "timeout_usec", PROTOCOL_ASK_TIMEOUT),
                   on_done, request, &handle);
    if (r != 0) {
        control_refuse_routing(request, request_string(request, "to"), r);
        return;
    }
    request->state = ask_get(&context->messages->asks, handle);
    request->drop = drop_ask;
}

const struct request_method control_tell_methods[] = {
    {"Tell", tell, .changes = true, .begins = true},
    {"Ask", ask, .changes = true, .begins = true},
    {0},
};

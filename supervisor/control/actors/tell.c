/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: Tell, Ask, Schedule, Unschedule, ListTimers. */

#include "shared/base/cleanup.h"
#include "shared/protocol/protocol-actors.h"
#include "supervisor/control/actors/actors.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/report.h"
#include "supervisor/control/target.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/message/actor-name.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/schedule/schedule.h"
#include "supervisor/varlink/request-parts.h"
#include <errno.h>
#include <string.h>

/* Checked recipient, type, key and payload; the topic borrows from the call. */
struct control_message {
    struct actor *actor;
    struct topic topic;
    struct payload payload;
};
/* clang-format off */
#define CONTROL_MESSAGE_NULL {.payload = PAYLOAD_NULL}
/* clang-format on */

static void message_deinit(struct control_message *message)
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

/* Takes "to", "type", "key" and "payload" of the call, and finds the actor. On false, an error has
 * been sent. The payload may be moved away before message_deinit(). */
static bool take_message(struct request *request, struct control_message *ret)
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
    _cleanup_(message_deinit)
    struct control_message message = CONTROL_MESSAGE_NULL;
    int r;

    if (!take_message(request, &message))
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

    request->state = NULL;
    if (envelope) {
        answer_reply(request, envelope);
    } else if (error == ETIMEDOUT) {
        request_fail(request, "TimedOut");
    } else {
        request_fail_strings(request, "Failed", "code", code ? code : "EIO", "reason",
                             reason ? reason : "");
    }
}

static void ask(struct request *request)
{
    const char *reply_type = request_string(request, "reply_type");
    _cleanup_(message_deinit)
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
    if (!take_message(request, &message))
        return;
    wanted = (struct router_message){
        .to = message.actor->reference, .topic = message.topic, .payload = &message.payload};
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

/* ---- timers ---- */

static void schedule(struct request *request)
{
    const bool has_date = request_has(request, "at");
    _cleanup_(message_deinit)
    struct control_message message = CONTROL_MESSAGE_NULL;
    struct schedule_options options = {
        .realtime = has_date,
        .at = (usec_t)request_int(request, has_date ? "at" : "delay_usec", 0),
        .period = (usec_t)request_int(request, "period_usec", 0),
    };
    uint64_t id;
    int r;

    if (request_has(request, "delay_usec") == has_date) {
        request_refuse(request, "delay_usec", "either this or at");
        return;
    }
    if (!request_range(request, "delay_usec", 0, INT64_MAX) ||
        !request_range(request, "period_usec", SCHEDULE_PERIOD_MIN, INT64_MAX) ||
        !take_message(request, &message))
        return;
    options.to = message.actor;
    options.topic = &message.topic;
    options.payload = &message.payload;
    r = schedule_add(request->context->messages, &options, &id);
    if (r == SCHEDULE_E_TOO_MANY || r == SCHEDULE_E_SHARE) {
        request_fail_string(request, "TooMany", "what", "timers");
    } else if (r < 0) {
        request_internal(request, r);
    } else {
        reply_uint(request_begin(request), "id", id);
        request_end(request);
    }
}

/* Timers cancelled at a time. */
#define CANCELLED_PER_STEP 32

/* Cancels an actor's timers of one type in parts. */
struct cancellation {
    struct request_parts parts;
    uint64_t to;     /* reference */
    uint64_t n, max; /* max: those armed at the start; later ones are not counted */
};

static bool cancel_some(struct request_parts *parts)
{
    struct cancellation *all = list_entry(parts, struct cancellation, parts);
    const char *type = request_string(parts->request, "type");
    struct actor *actor = actor_get(parts->request->context->messages, all->to);
    unsigned n = 0;

    if (actor)
        n = schedule_cancel_type(actor, type, (uint32_t)strlen(type), NULL, CANCELLED_PER_STEP);
    all->n += n;
    (void)request_part_full(parts, n);
    return n == CANCELLED_PER_STEP && all->n < all->max;
}

static void finish_cancelling(struct request_parts *parts)
{
    reply_uint(request_part_reply(parts), "cancelled",
               list_entry(parts, struct cancellation, parts)->n);
}

static void cancel_type(struct request *request, const char *to)
{
    const struct actor *actor = control_find_actor(request, to);
    struct cancellation *all = actor ? request_allocate(request, sizeof(*all)) : NULL;

    if (!all)
        return;
    all->parts = (struct request_parts){.step = cancel_some, .finish = finish_cancelling};
    all->to = actor->reference;
    all->max = request->context->messages->schedules.shares.used[SCHEDULE_SHARE_N];
    request_in_parts(request, &all->parts);
}

static void unschedule(struct request *request)
{
    const int64_t id = request_int(request, "id", 0);
    const char *to = request_string(request, "to");
    const bool has_id = request_has(request, "id");

    if (has_id == (to && request_has(request, "type"))) {
        request_refuse(request, "id", "either this, or both to and type");
    } else if (!has_id) {
        cancel_type(request, to);
    } else if (schedule_cancel(request->context->messages, (uint64_t)id, NULL) == 0) {
        request_fail_int(request, "NoSuchTimer", "id", id);
    } else {
        reply_uint(request_begin(request), "cancelled", 1);
        request_end(request);
    }
}

static void report_schedule(struct reply *reply, const struct schedule *schedule)
{
    const struct envelope *envelope = schedule->envelope;

    reply_object(reply, NULL);
    reply_uint(reply, "id", schedule->id);
    reply_string(reply, "to", schedule->recipient->actor->name);
    report_topic(reply, &envelope->topic);
    reply_uint(reply, "next_at", alarm_realtime(&schedule->alarm));
    reply_uint_if(reply, "period_usec", schedule->period);
    reply_string_if(reply, "owner", actor_name_of(schedule->context, envelope->sender));
    reply_uint(reply, "payload_bytes", envelope->payload.size);
    reply_end_object(reply);
}

static void write_timer(struct request_parts *parts, const void *object)
{
    const struct schedule *schedule = object;
    const struct actor *actor = schedule->recipient->actor;
    const char *to = request_string(parts->request, "to");

    if (actor && (!to || actor == actor_by_address(parts->request->context->messages, to)))
        report_schedule(request_part_item(parts), schedule);
}

static void list_timers(struct request *request)
{
    const char *to = request_string(request, "to");

    if (!to || control_find_actor(request, to))
        request_list_table(request, "timers", &request->context->messages->schedules.handles,
                           write_timer);
}

const struct request_method control_tell_methods[] = {
    {"Tell", tell, .changes = true, .begins = true},
    {"Ask", ask, .changes = true, .begins = true},
    {"Schedule", schedule, .changes = true, .begins = true},
    {"Unschedule", unschedule, .changes = true},
    {"ListTimers", list_timers, .changes = false},
    {0},
};

/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: who is there, held back and let go. */

#include "control-actors.h"

#include "context.h"
#include "control-target.h"
#include "group.h"
#include "interfaces.h"
#include "message-log.h"
#include "report-actor.h"
#include "request-parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 1000

/* ---- shared ---- */

bool control_take_limit(struct request *request, const struct varlink_int *given, size_t *ret)
{
    if (given->set && (given->value < 1 || given->value > LIST_MAX))
        return control_refuse_option(request, "limit", "1 to 1000");
    *ret = given->set ? (size_t)given->value : LIST_MAX;
    return true;
}

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

static void refuse_actor(struct request *request, const char *name)
{
    struct reply *reply = request_begin_error(request, "NoSuchActor");

    reply_string(reply, "name", name);
    reply_string_if(reply, "nearest", registry_nearest(&request->context->registry, name));
    request_end(request);
}

struct actor *control_find_actor(struct request *request, const char *name)
{
    struct context *context = request->context;
    struct actor *actor = NULL;
    uint64_t reference;
    int r;

    r = router_find(context, name, &reference);
    if (r < 0) {
        request_internal(request, r);
        return NULL;
    }
    if (r == 0)
        actor = actor_get(&context->actors, reference);
    if (!actor)
        refuse_actor(request, name);
    return actor;
}

struct actor *control_find_exchange(struct request *request, const char *name)
{
    struct actor *actor = actor_by_name(&request->context->actors, name);

    if (actor && actor->kind == ACTOR_EXCHANGE)
        return actor;
    request_fail_string(request, "NoSuchExchange", "name", name);
    return NULL;
}

void control_refuse_routing(struct request *request, const char *to, int result)
{
    switch (result) {
    case ROUTER_E_GONE:
        refuse_actor(request, to);
        break;
    case ROUTER_E_FULL:
        request_fail_string(request, "MailboxFull", "name", to);
        break;
    case ROUTER_E_NO_MATCH:
        request_fail_string(request, "NoMatch", "exchange", to);
        break;
    default:
        request_internal(request, result);
    }
}

/* ---- Lookup, ListActors ---- */

struct name_parameters {
    const char *name;
};

static void lookup(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"name", VARLINK_STRING, true, offsetof(struct name_parameters, name)},
        {0},
    };
    struct name_parameters parameters = {0};
    const struct actor *actor;

    if (!request_take(request, table, &parameters))
        return;
    actor = control_find_actor(request, parameters.name);
    if (!actor)
        return;
    report_actor(request_begin(request), "actor", actor);
    request_end(request);
}

struct list_parameters {
    const char *kind, *under;
    struct varlink_int limit;
};

static bool kind_exists(const char *kind)
{
    for (unsigned i = 0; i < _ACTOR_N_KINDS; i++)
        if (strcmp(actor_kind_to_string((enum actor_kind)i), kind) == 0)
            return true;
    return false;
}

static bool is_listed(const struct actor *actor, const struct list_parameters *wanted)
{
    const size_t size = wanted->under ? strlen(wanted->under) : 0;

    if (actor->identity) /* a stand-in: the place is listed */
        return false;
    if (wanted->kind && strcmp(actor_kind_to_string(actor->kind), wanted->kind) != 0)
        return false;
    return !wanted->under || (strncmp(actor->name, wanted->under, size) == 0 &&
                              (actor->name[size] == '\0' || actor->name[size] == '/'));
}

/* ListActors on its way through the table. */
struct listing {
    struct request_parts parts;
    struct list_parameters wanted; /* copies */
    size_t cursor, limit;
    uint64_t total;
};

#define listing_of(pointer) list_entry(pointer, struct listing, parts)

static bool write_actors(struct request_parts *parts)
{
    struct listing *listing = listing_of(parts);
    const struct actor *actor;

    do {
        actor = actor_next(&parts->request->context->actors, &listing->cursor);
        if (!actor)
            return true;
        if (is_listed(actor, &listing->wanted) && listing->total++ < listing->limit)
            report_actor(request_part_reply(parts), NULL, actor);
    } while (!request_part_full(parts, 1));
    return false;
}

static void finish_actors(struct request_parts *parts)
{
    reply_uint(request_part_reply(parts), "total", listing_of(parts)->total);
}

static void free_wanted(struct list_parameters *wanted)
{
    free((char *)(uintptr_t)wanted->kind);
    free((char *)(uintptr_t)wanted->under);
}

static void free_actors(struct request_parts *parts)
{
    free_wanted(&listing_of(parts)->wanted);
    free(listing_of(parts));
}

static int copy_wanted(struct listing *listing, const struct list_parameters *wanted)
{
    struct list_parameters *copy = &listing->wanted;

    copy->kind = wanted->kind ? strdup(wanted->kind) : NULL;
    copy->under = wanted->under ? strdup(wanted->under) : NULL;
    if ((!wanted->kind || copy->kind) && (!wanted->under || copy->under))
        return 0;
    free_wanted(copy);
    return -ENOMEM;
}

static void list_actors(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"kind", VARLINK_STRING, false, offsetof(struct list_parameters, kind)},
        {"under", VARLINK_STRING, false, offsetof(struct list_parameters, under)},
        {"limit", VARLINK_INT, false, offsetof(struct list_parameters, limit)},
        {0},
    };
    struct list_parameters parameters = {0};
    struct listing *listing;
    size_t limit = 0;

    if (!request_take(request, table, &parameters) ||
        !control_take_limit(request, &parameters.limit, &limit))
        return;
    if (parameters.kind && !kind_exists(parameters.kind)) {
        control_refuse_option(request, "kind", "slot, pool, group, exchange, client");
        return;
    }
    listing = calloc(1, sizeof(*listing));
    if (!listing || copy_wanted(listing, &parameters) < 0) {
        free(listing);
        request_internal(request, -ENOMEM);
        return;
    }
    listing->limit = limit;
    listing->parts = (struct request_parts){
        .array = "actors", .write = write_actors, .finish = finish_actors, .free = free_actors};
    request_in_parts(request, &listing->parts);
}

/* ---- Pause, Resume ---- */

struct actor_parameters {
    const char *actor;
};

static struct actor *take_actor(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"actor", VARLINK_STRING, true, offsetof(struct actor_parameters, actor)},
        {0},
    };
    struct actor_parameters parameters = {0};

    if (!request_take(request, table, &parameters))
        return NULL;
    return control_find_actor(request, parameters.actor);
}

static void pause_actor(struct request *request)
{
    struct actor *actor = take_actor(request);

    if (!actor)
        return;
    router_pause(actor);
    request_done(request);
}

static void resume_actor(struct request *request)
{
    struct actor *actor = take_actor(request);

    if (!actor)
        return;
    router_resume(actor);
    request_done(request);
}

/* ---- SetMessageLog ---- */

struct log_parameters {
    const char *target;
    struct varlink_flag enqueued, dispatched, unhandled;
};

/* A group's or an exchange's switches; NULL when it has been answered. */
static uint8_t *find_log(struct request *request, const char *target, struct group **ret)
{
    struct context *context = request->context;
    struct actor *actor = actor_by_name(&context->actors, target);

    *ret = registry_find(&context->registry, target);
    if (*ret)
        return &(*ret)->message_log;
    if (actor && actor->kind == ACTOR_EXCHANGE)
        return &actor->log;
    refuse_actor(request, target);
    return NULL;
}

static uint8_t with_bit(uint8_t what, struct varlink_flag given, enum actor_log bit)
{
    if (!given.set)
        return what;
    return (uint8_t)(given.value ? what | bit : what & ~bit);
}

static void set_message_log(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"target", VARLINK_STRING, true, offsetof(struct log_parameters, target)},
        {"enqueued", VARLINK_FLAG, false, offsetof(struct log_parameters, enqueued)},
        {"dispatched", VARLINK_FLAG, false, offsetof(struct log_parameters, dispatched)},
        {"unhandled", VARLINK_FLAG, false, offsetof(struct log_parameters, unhandled)},
        {0},
    };
    struct log_parameters parameters = {0};
    struct group *group;
    struct reply *reply;
    uint8_t *log, what;

    if (!request_take(request, table, &parameters))
        return;
    log = find_log(request, parameters.target, &group);
    if (!log)
        return;
    what = *log;
    what = with_bit(what, parameters.enqueued, ACTOR_LOG_ENQUEUED);
    what = with_bit(what, parameters.dispatched, ACTOR_LOG_DISPATCHED);
    what = with_bit(what, parameters.unhandled, ACTOR_LOG_UNHANDLED);
    if (group)
        message_log_switch(group, what);
    else
        *log = what;
    reply = request_begin(request);
    reply_bool(reply, "enqueued", what & ACTOR_LOG_ENQUEUED);
    reply_bool(reply, "dispatched", what & ACTOR_LOG_DISPATCHED);
    reply_bool(reply, "unhandled", what & ACTOR_LOG_UNHANDLED);
    request_end(request);
}

const struct request_method control_actors_methods[] = {
    {"Lookup", lookup, false},
    {"ListActors", list_actors, false},
    {"Tell", control_tell, true},
    {"Ask", control_ask, true},
    {"Schedule", control_schedule, true},
    {"Unschedule", control_unschedule, true},
    {"ListTimers", control_list_timers, false},
    {"Pause", pause_actor, true},
    {"Resume", resume_actor, true},
    {"Subscribe", control_subscribe, true},
    {"Unsubscribe", control_unsubscribe, true},
    {"CreateExchange", control_create_exchange, true},
    {"DeleteExchange", control_delete_exchange, true},
    {"ListExchanges", control_list_exchanges, false},
    {"ListDeadLetters", control_list_dead_letters, false},
    {"GetDeadLetter", control_get_dead_letter, false},
    {"Requeue", control_requeue, true},
    {"Purge", control_purge, true},
    {"SetMessageLog", set_message_log, true},
    {0},
};

/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: dead letters and the error queue. */

#include "supervisor/control/actors/actors.h"

#include "supervisor/control/actors/report-actor.h"
#include "supervisor/control/actors/requeue.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/list.h"
#include "supervisor/control/target.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/message-context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUEUES_ALLOWED "dead_letters, errors"
#define REASONS_ALLOWED                                                                            \
    "unhandled, no_match, gone, mailbox_full, dropped, late_reply, wrong_reply, unknown_death, "   \
    "loop, no_memory, job, error, crash"

/* The cost of changing a letter, relative to looking at one. */
#define CHANGE_COST 8

/* ---- parameters ---- */

struct filter_parameters {
    const char *queue, *reason, *sender, *recipient, *type, *job;
    struct varlink_int since;
};

static const struct varlink_parameter filter_table[] = {
    {"queue", VARLINK_STRING, false, offsetof(struct filter_parameters, queue)},
    {"reason", VARLINK_STRING, false, offsetof(struct filter_parameters, reason)},
    {"sender", VARLINK_STRING, false, offsetof(struct filter_parameters, sender)},
    {"recipient", VARLINK_STRING, false, offsetof(struct filter_parameters, recipient)},
    {"type", VARLINK_STRING, false, offsetof(struct filter_parameters, type)},
    {"job", VARLINK_STRING, false, offsetof(struct filter_parameters, job)},
    {"since_at", VARLINK_INT, false, offsetof(struct filter_parameters, since)},
    {0},
};

static bool take_queue(struct request *request, const char *queue, int *ret)
{
    if (!queue)
        return true;
    if (strcmp(queue, "dead_letters") == 0)
        *ret = DEAD_LETTERS;
    else if (strcmp(queue, "errors") == 0)
        *ret = DEAD_ERRORS;
    else
        return control_refuse_option(request, "queue", QUEUES_ALLOWED);
    return true;
}

/* `object` NULL = everything. */
static bool take_filter(struct request *request, json_t *object, struct dead_letter_filter *ret)
{
    struct filter_parameters given = {0};
    enum dead_letter_reason reason;
    const char *bad = NULL;

    *ret = (struct dead_letter_filter)DEAD_LETTER_FILTER_ANY;
    if (varlink_take(object, filter_table, &given, &bad) != 0) {
        request_invalid(request, bad);
        return false;
    }
    if (!take_queue(request, given.queue, &ret->queue))
        return false;
    if (given.reason) {
        if (dead_letter_reason_from_string(&reason, given.reason) < 0)
            return control_refuse_option(request, "reason", REASONS_ALLOWED);
        ret->reason = (int)reason;
    }
    if (given.since.set && given.since.value < 0)
        return control_refuse_option(request, "since_at", "microseconds since 1970");
    ret->sender = given.sender;
    ret->recipient = given.recipient;
    ret->type = given.type;
    ret->job = given.job;
    ret->since = (usec_t)given.since.value;
    return true;
}

/* NULL = an error has been sent. */
static struct dead_letter *find_letter(struct request *request, int64_t id)
{
    struct dead_letter *letter = NULL;

    if (id > 0)
        letter = dead_letter_find(&request->context->messages->dead_letters, (uint64_t)id);
    if (!letter)
        request_fail_int(request, "NoSuchDeadLetter", "id", id);
    return letter;
}

/* ---- ListDeadLetters, GetDeadLetter ---- */

struct letters_parameters {
    json_t *filter;
    struct control_page page;
};

/* Newest first: the cursor of the call is the id of the last one looked at. */
struct letters {
    struct control_list list;
    struct dead_letter_filter filter; /* texts borrowed from the call */
    struct dead_letter_walk walk;
};

#define letters_of(pointer) list_entry(pointer, struct letters, list)

static void report_counts(struct reply *reply, const struct dead_letters *letters)
{
    reply_array(reply, "counts");
    for (unsigned i = 0; i < _DEAD_N_REASONS; i++) {
        if (letters->counts[i] == 0)
            continue;
        reply_object(reply, NULL);
        reply_string(reply, "reason", dead_letter_reason_to_string((enum dead_letter_reason)i));
        reply_uint(reply, "count", letters->counts[i]);
        reply_end_object(reply);
    }
    reply_end_array(reply);
    reply_uint(reply, "evicted", letters->n_evicted);
}

static bool step_letters(struct control_list *list)
{
    const struct access access = access_of(list->parts.request);
    struct letters *letters = letters_of(list);
    const struct dead_letter *letter = dead_letter_walk_next(&letters->walk);

    if (!letter)
        return false;
    if (list->cursor != 0 && letter->id >= list->cursor)
        return true; /* on an earlier page */
    list->cursor = letter->id;
    if (dead_letter_matches(letter, &letters->filter))
        report_dead_letter(control_list_item(list), NULL, &access, letter, false);
    return true;
}

static void finish_letters(struct control_list *list)
{
    report_counts(request_part_reply(&list->parts),
                  &list->parts.request->context->messages->dead_letters);
}

static void free_letters(struct control_list *list)
{
    dead_letter_walk_end(&letters_of(list)->walk);
    free(letters_of(list));
}

void control_list_dead_letters(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"filter", VARLINK_OBJECT, false, offsetof(struct letters_parameters, filter)},
        CONTROL_PAGE_ROWS(struct letters_parameters),
        {0},
    };
    struct letters_parameters parameters = {0};
    struct dead_letter_filter filter;
    struct letters *letters;

    if (!request_take(request, table, &parameters) ||
        !control_take_page(request, &parameters.page) ||
        !take_filter(request, parameters.filter, &filter))
        return;
    letters = calloc(1, sizeof(*letters));
    if (!letters) {
        request_internal(request, -ENOMEM);
        return;
    }
    letters->list.step = step_letters;
    letters->list.finish = finish_letters;
    letters->list.free = free_letters;
    letters->filter = filter;
    dead_letter_walk_begin(&letters->walk, &request->context->messages->dead_letters, true);
    control_list(request, &letters->list, "letters", &parameters.page);
}

struct id_parameters {
    struct varlink_int id;
};

void control_get_dead_letter(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"id", VARLINK_INT, true, offsetof(struct id_parameters, id)},
        {0},
    };
    const struct access access = access_of(request);
    struct id_parameters parameters = {0};
    const struct dead_letter *letter;

    if (!request_take(request, table, &parameters))
        return;
    letter = find_letter(request, parameters.id.value);
    if (!letter)
        return;
    report_dead_letter(request_begin(request), "letter", &access, letter, true);
    request_end(request);
}

/* ---- Requeue, Purge ---- */

struct change_parameters {
    struct varlink_int id;
    json_t *filter;
    const char *to;
};

/* A walk over the letters that match and were there when it began. */
struct change {
    struct request_parts parts;
    struct dead_letter_filter filter; /* texts borrowed from the call */
    struct dead_letter_walk walk;
    uint64_t last; /* id */
    const char *to;
    uint64_t n_purged;
    struct requeue_result result;
};

#define change_of(pointer) list_entry(pointer, struct change, parts)

/*
 * Calls `apply` for matching letters until the turn's share is used up. Returns whether all are
 * done.
 */
static bool change_letters(struct request_parts *parts,
                           void (*apply)(struct change *change, struct dead_letter *letter))
{
    struct change *change = change_of(parts);
    struct dead_letter *letter;
    bool matches;

    do {
        letter = dead_letter_walk_next(&change->walk);
        if (!letter || letter->id > change->last)
            return true;
        matches = dead_letter_matches(letter, &change->filter);
        if (matches)
            apply(change, letter);
    } while (!request_part_full(parts, matches ? CHANGE_COST : 1));
    return false;
}

static void free_change(struct request_parts *parts)
{
    dead_letter_walk_end(&change_of(parts)->walk);
    free(change_of(parts));
}

/* Changes all letters that match the filter. */
static void change_all(struct request *request, const struct change_parameters *parameters,
                       bool (*write)(struct request_parts *),
                       void (*finish)(struct request_parts *))
{
    struct dead_letters *letters = &request->context->messages->dead_letters;
    struct dead_letter_filter filter;
    struct change *change;

    if (!take_filter(request, parameters->filter, &filter))
        return;
    change = calloc(1, sizeof(*change));
    if (!change) {
        request_internal(request, -ENOMEM);
        return;
    }
    change->parts = (struct request_parts){.write = write, .finish = finish, .free = free_change};
    change->filter = filter;
    change->to = parameters->to;
    change->last = letters->last_id;
    dead_letter_walk_begin(&change->walk, letters, false);
    request_in_parts(request, &change->parts);
}

/* Either an id or a filter. */
static bool take_which(struct request *request, const struct change_parameters *given)
{
    return given->id.set != (given->filter != NULL) ||
           control_refuse_option(request, "id", "either this or filter");
}

static void requeue_one(struct request *request, int64_t id, const char *to)
{
    struct dead_letter *letter = find_letter(request, id);
    struct requeue_result result = {0};
    struct reply *reply;

    if (!letter)
        return;
    requeue_letter(request->context, letter, to, &result);
    if (result.n_failed > 0) {
        reply = request_begin_error(request, "NotRequeued");
        reply_int(reply, "id", id);
        reply_string(reply, "problem", result.problem);
    } else {
        reply = request_begin(request);
        reply_uint(reply, "requeued", result.n_requeued);
        reply_uint(reply, "failed", 0);
        reply_string_if(reply, "job", result.job);
    }
    request_end(request);
}

static void requeue_match(struct change *change, struct dead_letter *letter)
{
    requeue_letter(change->parts.request->context, letter, change->to, &change->result);
}

static bool requeue_part(struct request_parts *parts)
{
    return change_letters(parts, requeue_match);
}

static void finish_requeue(struct request_parts *parts)
{
    const struct requeue_result *result = &change_of(parts)->result;
    struct reply *reply = request_part_reply(parts);

    reply_uint(reply, "requeued", result->n_requeued);
    reply_uint(reply, "failed", result->n_failed);
    reply_string_if(reply, "problem", result->problem);
}

void control_requeue(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"id", VARLINK_INT, false, offsetof(struct change_parameters, id)},
        {"filter", VARLINK_OBJECT, false, offsetof(struct change_parameters, filter)},
        {"to", VARLINK_STRING, false, offsetof(struct change_parameters, to)},
        {0},
    };
    struct change_parameters parameters = {0};

    if (!request_take(request, table, &parameters) || control_refuse_stopping(request) ||
        !take_which(request, &parameters) ||
        (parameters.to && !control_find_actor(request, parameters.to)))
        return;
    if (parameters.id.set)
        requeue_one(request, parameters.id.value, parameters.to);
    else
        change_all(request, &parameters, requeue_part, finish_requeue);
}

static void purge_match(struct change *change, struct dead_letter *letter)
{
    dead_letter_take(change->walk.letters, letter);
    dead_letter_free(letter);
    change->n_purged++;
}

static bool purge_part(struct request_parts *parts)
{
    return change_letters(parts, purge_match);
}

static void finish_purge(struct request_parts *parts)
{
    reply_uint(request_part_reply(parts), "purged", change_of(parts)->n_purged);
}

void control_purge(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"id", VARLINK_INT, false, offsetof(struct change_parameters, id)},
        {"filter", VARLINK_OBJECT, false, offsetof(struct change_parameters, filter)},
        {0},
    };
    struct dead_letters *letters = &request->context->messages->dead_letters;
    struct change_parameters parameters = {0};
    struct dead_letter *letter;

    if (!request_take(request, table, &parameters) || !take_which(request, &parameters))
        return;
    if (!parameters.id.set) {
        change_all(request, &parameters, purge_part, finish_purge);
        return;
    }
    letter = find_letter(request, parameters.id.value);
    if (!letter)
        return;
    dead_letter_take(letters, letter);
    dead_letter_free(letter);
    reply_uint(request_begin(request), "purged", 1);
    request_end(request);
}

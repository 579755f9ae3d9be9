/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: dead letters and the error queue. */

#include "supervisor/control/control-actors.h"

#include "supervisor/context.h"
#include "supervisor/control/control-list.h"
#include "supervisor/control/control-target.h"
#include "supervisor/control/report-actor.h"
#include "supervisor/control/requeue.h"
#include "supervisor/message/dead-letter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUEUES_ALLOWED "dead_letters, errors"
#define REASONS_ALLOWED                                                                            \
    "unhandled, no-match, gone, mailbox-full, dropped, late-reply, wrong-reply, unknown-death, "   \
    "loop, no-memory, job, error, crash"

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

/* NULL when it has been answered. */
static struct dead_letter *find_letter(struct request *request, int64_t id)
{
    struct dead_letter *letter = NULL;

    if (id > 0)
        letter = dead_letter_find(&request->context->dead_letters, (uint64_t)id);
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
    struct dead_letter_filter filter; /* its texts are the call's, which lives as long as we do */
    struct list_cursor at[_DEAD_N_QUEUES];
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

/* The newest of those ahead, in either ring; NULL = none is left. */
static const struct dead_letter *next_letter(struct letters *letters,
                                             const struct dead_letters *all)
{
    const struct dead_letter *newest = NULL;
    unsigned of = 0;

    for (unsigned i = 0; i < _DEAD_N_QUEUES; i++) {
        const struct list *node = letters->at[i].at;
        const struct dead_letter *letter;

        if (!node || node == &all->rings[i])
            continue;
        letter = list_entry(node, struct dead_letter, link);
        if (newest && letter->id < newest->id)
            continue;
        newest = letter;
        of = i;
    }
    if (newest)
        list_cursor_advance(&letters->at[of]);
    return newest;
}

static bool step_letters(struct control_list *list)
{
    const struct access access = access_of(list->parts.request);
    struct letters *letters = letters_of(list);
    const struct dead_letter *letter =
        next_letter(letters, &list->parts.request->context->dead_letters);

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
    report_counts(request_part_reply(&list->parts), &list->parts.request->context->dead_letters);
}

static void free_letters(struct control_list *list)
{
    for (unsigned i = 0; i < _DEAD_N_QUEUES; i++)
        list_cursor_end(&letters_of(list)->at[i]);
    free(letters_of(list));
}

void control_list_dead_letters(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"filter", VARLINK_OBJECT, false, offsetof(struct letters_parameters, filter)},
        CONTROL_PAGE_ROWS(struct letters_parameters),
        {0},
    };
    struct dead_letters *all = &request->context->dead_letters;
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
    for (unsigned i = 0; i < _DEAD_N_QUEUES; i++)
        list_cursor_begin(&letters->at[i], &all->cursors, &all->rings[i], true);
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
    struct varlink_int id, after;
    json_t *filter;
    const char *to;
};

/* One id or a filter. */
static bool take_which(struct request *request, const struct change_parameters *given,
                       struct dead_letter_filter *ret)
{
    if (given->id.set == (given->filter != NULL))
        return control_refuse_option(request, "id", "either this or filter");
    return take_filter(request, given->filter, ret);
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

void control_requeue(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"id", VARLINK_INT, false, offsetof(struct change_parameters, id)},
        {"filter", VARLINK_OBJECT, false, offsetof(struct change_parameters, filter)},
        {"to", VARLINK_STRING, false, offsetof(struct change_parameters, to)},
        {"after", VARLINK_INT, false, offsetof(struct change_parameters, after)},
        {0},
    };
    struct change_parameters parameters = {0};
    struct requeue_result result = {0};
    struct dead_letter_filter filter;
    struct reply *reply;

    if (!request_take(request, table, &parameters) || control_refuse_stopping(request) ||
        !take_which(request, &parameters, &filter) ||
        (parameters.to && !control_find_actor(request, parameters.to)))
        return;
    if (parameters.id.set) {
        requeue_one(request, parameters.id.value, parameters.to);
        return;
    }
    if (parameters.after.value < 0) {
        control_refuse_option(request, "after", "an id");
        return;
    }
    requeue_letters(request->context, &filter, parameters.to, (uint64_t)parameters.after.value,
                    &result);
    reply = request_begin(request);
    reply_uint(reply, "requeued", result.n_requeued);
    reply_uint(reply, "failed", result.n_failed);
    if (result.n_failed > 0)
        reply_string(reply, "problem", result.problem);
    reply_uint_if(reply, "last", result.last);
    request_end(request);
}

void control_purge(struct request *request)
{
    static const struct varlink_parameter table[] = {
        {"id", VARLINK_INT, false, offsetof(struct change_parameters, id)},
        {"filter", VARLINK_OBJECT, false, offsetof(struct change_parameters, filter)},
        {0},
    };
    struct dead_letters *letters = &request->context->dead_letters;
    struct change_parameters parameters = {0};
    struct dead_letter_filter filter;
    struct dead_letter *letter;
    uint64_t n = 1;

    if (!request_take(request, table, &parameters) || !take_which(request, &parameters, &filter))
        return;
    if (parameters.id.set) {
        letter = find_letter(request, parameters.id.value);
        if (!letter)
            return;
        dead_letter_take(letters, letter);
        dead_letter_free(letter);
    } else {
        n = dead_letters_purge(letters, &filter);
    }
    reply_uint(request_begin(request), "purged", n);
    request_end(request);
}

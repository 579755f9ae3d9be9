/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: dead letters and the error queue. */

#include "supervisor/control/actors/actors.h"

#include "supervisor/control/actors/requeue.h"
#include "supervisor/control/actors/stored-letters.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/paged-list.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/message-context.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/removal.h"
#include <stdlib.h>

/* The cost of changing a letter, relative to looking at one. */
#define CHANGE_COST 8

/* ---- parameters ---- */

/* Takes the parameter "filter"; without it, everything matches. */
static struct dead_letter_filter take_filter(const struct request *request)
{
    struct varlink_object given;
    const char *cause;

    (void)varlink_object(&request->parameters, "filter", &given);
    cause = varlink_string(&given, "cause");
    return (struct dead_letter_filter){
        .queue = varlink_choice(&given, "queue"),
        .reason = varlink_choice(&given, "reason"),
        .sender = varlink_string(&given, "sender"),
        .recipient = varlink_string(&given, "recipient"),
        .type = varlink_string(&given, "type"),
        .job = varlink_string(&given, "job"),
        .key = varlink_string(&given, "key"),
        .cause = attempt_cause_from_string(cause ? cause : ""),
        .since = varlink_usec(&given, "since_at", 0),
        .until = varlink_usec(&given, "until_at", 0),
    };
}

/* NULL = the call waits for it, or an error has been sent. */
static struct dead_letter *find_letter(struct request *request, int64_t id)
{
    struct dead_letter *letter = NULL;
    const char *problem;

    if (id > 0)
        letter = dead_letter_find(&request->context->messages->dead_letters, (uint64_t)id);
    if (letter || control_await_letters(request))
        return letter;
    problem = control_letters_problem(request);
    if (problem)
        request_fail_string(request, "StoreFailed", "problem", problem);
    else
        request_fail_int(request, "NoSuchDeadLetter", "id", id);
    return NULL;
}

static void report_problem(struct request_parts *parts)
{
    reply_string_if(request_part_reply(parts), "store_problem",
                    control_letters_problem(parts->request));
}

/* ---- ListDeadLetters, GetDeadLetter ---- */

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
    struct letters *letters = letters_of(list);
    const struct dead_letter *letter = dead_letter_walk_next(&letters->walk);

    if (!letter)
        return false;
    if (list->cursor != 0 && letter->id >= list->cursor)
        return true; /* on an earlier page */
    list->cursor = letter->id;
    if (dead_letter_matches(letter, &letters->filter))
        report_dead_letter(control_list_item(list), NULL, list->parts.request, letter, false);
    return true;
}

static void finish_letters(struct control_list *list)
{
    report_counts(request_part_reply(&list->parts),
                  &list->parts.request->context->messages->dead_letters);
    report_problem(&list->parts);
}

static void free_letters(struct control_list *list)
{
    dead_letter_walk_end(&letters_of(list)->walk);
    free(letters_of(list));
}

/* Those of messages can be looked at while the disk does not answer. */
static bool is_disk_slow(const struct request *request)
{
    const struct store *store = request->context->durable->store;

    return store && store_is_slow(store);
}

static void list_letters(struct request *request)
{
    struct letters *letters;

    if (!is_disk_slow(request) && control_await_letters(request))
        return;
    letters = request_allocate(request, sizeof(*letters));
    if (!letters)
        return;
    letters->list.step = step_letters;
    letters->list.finish = finish_letters;
    letters->list.free = free_letters;
    letters->filter = take_filter(request);
    dead_letter_walk_begin(&letters->walk, &request->context->messages->dead_letters, true);
    control_list(request, &letters->list, "letters");
}

static void get_letter(struct request *request)
{
    const struct dead_letter *letter = find_letter(request, request_int(request, "id", 0));

    if (!letter)
        return;
    report_dead_letter(request_begin(request), "letter", request, letter, true);
    request_end(request);
}

/* ---- Requeue, Purge ---- */

/* A walk over the letters that match and were there when it began. */
struct change {
    struct request_parts parts;
    struct dead_letter_filter filter; /* texts borrowed from the call */
    struct dead_letter_walk walk;
    void (*apply)(struct change *change, struct dead_letter *letter);
    uint64_t last; /* id */
    uint64_t n_purged;
    uint64_t n_counted; /* for dry_run, which changes nothing */
    bool unwritten;     /* a row of a purged letter may still be on disk */
    int error;          /* of writing that */
    struct removal_wait *wait;
    struct requeue requeue;
};

#define change_of(pointer) list_entry(pointer, struct change, parts)

static void on_written(void *userdata, int result)
{
    struct change *change = userdata;

    change->wait = removal_wait_free(change->wait);
    change->unwritten = false;
    change->error = result;
    request_parts_resume(&change->parts);
}

/* Returns whether the call waits until rows are removed from disk. */
static bool is_writing(struct change *change)
{
    const struct request *request = change->parts.request;

    if (change->unwritten && !change->wait && !request_is_oneway(request))
        change->wait = removal_await(request->context->durable->store, on_written, change);
    return change->wait;
}

/* Changes matching letters until the turn's share is used up. Returns whether all are done. */
static bool change_letters(struct request_parts *parts)
{
    struct change *change = change_of(parts);
    struct dead_letter *letter;
    bool matches;

    do {
        letter = dead_letter_walk_next(&change->walk);
        if (!letter || letter->id > change->last) {
            parts->waits = requeue_is_pending(&change->requeue) || is_writing(change);
            return !parts->waits;
        }
        matches = dead_letter_matches(letter, &change->filter);
        if (matches)
            change->apply(change, letter);
    } while (!request_part_full(parts, matches ? CHANGE_COST : 1));
    return false;
}

static void free_change(struct request_parts *parts)
{
    dead_letter_walk_end(&change_of(parts)->walk);
    requeue_deinit(&change_of(parts)->requeue);
    removal_wait_free(change_of(parts)->wait);
    free(change_of(parts));
}

static void on_all_settled(struct requeue *requeue)
{
    struct change *change = list_entry(requeue, struct change, requeue);

    if (change->parts.waits)
        request_parts_resume(&change->parts);
}

static void count_match(struct change *change, struct dead_letter *letter)
{
    (void)letter;
    change->n_counted++;
}

/* What a call with dry_run has found: up_to bounds another call to that. */
static void report_dry_run(struct reply *reply, const struct change *change)
{
    if (request_bool(change->parts.request, "dry_run"))
        reply_uint(reply, "up_to", change->last);
}

/* Changes all letters that match the filter. */
static void change_all(struct request *request, const char *to,
                       void (*apply)(struct change *, struct dead_letter *),
                       void (*finish)(struct request_parts *))
{
    struct dead_letters *letters = &request->context->messages->dead_letters;
    struct change *change;

    if (control_await_letters(request))
        return;
    change = request_allocate(request, sizeof(*change));
    if (!change)
        return;
    change->parts =
        (struct request_parts){.write = change_letters, .finish = finish, .free = free_change};
    change->filter = take_filter(request);
    change->apply = request_bool(request, "dry_run") ? count_match : apply;
    requeue_init(&change->requeue, request->context, to);
    change->requeue.settled = on_all_settled;
    change->last = letters->last_id;
    if ((uint64_t)request_int(request, "up_to", INT64_MAX) < change->last)
        change->last = (uint64_t)request_int(request, "up_to", 0);
    dead_letter_walk_begin(&change->walk, letters, false);
    request_in_parts(request, &change->parts);
}

/* Either an id or a filter. */
static bool take_which(struct request *request)
{
    const bool has_id = request_has(request, "id"), dry_run = request_bool(request, "dry_run");

    if (has_id == request_has(request, "filter"))
        return request_refuse(request, "id", "either this or filter");
    return !has_id || (!dry_run && !request_has(request, "up_to")) ||
           request_refuse(request, dry_run ? "dry_run" : "up_to", "only with filter");
}

/* A call that sends one letter. */
struct single {
    struct requeue requeue;
    struct request *request;
};

static void drop_single(struct request *request)
{
    struct single *single = request->state;

    requeue_deinit(&single->requeue);
    free(single);
}

static void on_settled(struct requeue *requeue)
{
    struct request *request = list_entry(requeue, struct single, requeue)->request;
    struct reply *reply;

    if (requeue->n_failed > 0) {
        reply = request_begin_error(request, "NotRequeued");
        reply_int(reply, "id", request_int(request, "id", 0));
        reply_string(reply, "problem", requeue->problem);
    } else {
        reply = request_begin(request);
        reply_uint(reply, "requeued", requeue->n_requeued);
        reply_uint(reply, "failed", 0);
        reply_string_if(reply, "job", requeue->job);
    }
    request_end(request);
}

static void requeue_one(struct request *request, const char *to)
{
    struct dead_letter *letter = find_letter(request, request_int(request, "id", 0));
    struct single *single = letter ? request_allocate(request, sizeof(*single)) : NULL;

    if (!single)
        return;
    single->request = request;
    requeue_init(&single->requeue, request->context, to);
    request->state = single;
    request->drop = drop_single;
    requeue_letter(&single->requeue, letter);
    if (request_is_oneway(request)) {
        request_done(request);
        return;
    }
    single->requeue.settled = on_settled;
    if (!requeue_is_pending(&single->requeue))
        on_settled(&single->requeue);
}

static void requeue_match(struct change *change, struct dead_letter *letter)
{
    requeue_letter(&change->requeue, letter);
}

static void finish_requeue(struct request_parts *parts)
{
    const struct requeue *requeue = &change_of(parts)->requeue;
    struct reply *reply = request_part_reply(parts);

    reply_uint(reply, "requeued", requeue->n_requeued + change_of(parts)->n_counted);
    reply_uint(reply, "failed", requeue->n_failed);
    report_dry_run(reply, change_of(parts));
    reply_string_if(reply, "problem", requeue->problem);
    report_problem(parts);
}

static void requeue(struct request *request)
{
    const char *to = request_string(request, "to");

    if (!take_which(request) || (to && !control_find_actor(request, to)))
        return;
    if (request_has(request, "id"))
        requeue_one(request, to);
    else
        change_all(request, to, requeue_match, finish_requeue);
}

/* Returns whether the letter also has to be removed from disk. */
static bool purge_letter(struct dead_letters *letters, struct dead_letter *letter)
{
    const bool stored = letter->row != 0;

    dead_letter_take(letters, letter);
    dead_letter_free(letter);
    return stored;
}

static void purge_match(struct change *change, struct dead_letter *letter)
{
    change->unwritten |= purge_letter(change->walk.letters, letter);
    change->n_purged++;
}

static void report_write_error(struct reply *reply, const struct request *request, int error)
{
    if (error < 0)
        reply_string(reply, "store_problem", store_problem(request->context->durable->store));
}

static void finish_purge(struct request_parts *parts)
{
    const struct change *change = change_of(parts);

    reply_uint(request_part_reply(parts), "purged", change->n_purged + change->n_counted);
    report_dry_run(request_part_reply(parts), change);
    if (change->error == 0)
        report_problem(parts);
    report_write_error(request_part_reply(parts), parts->request, change->error);
}

static void on_purged(void *userdata, int result)
{
    struct request *request = userdata;
    struct reply *reply = request_begin(request);

    reply_uint(reply, "purged", 1);
    report_write_error(reply, request, result);
    request_end(request);
}

static void purge(struct request *request)
{
    struct dead_letter *letter;

    if (!take_which(request))
        return;
    if (!request_has(request, "id")) {
        change_all(request, NULL, purge_match, finish_purge);
        return;
    }
    letter = find_letter(request, request_int(request, "id", 0));
    if (!letter)
        return;
    if (purge_letter(&request->context->messages->dead_letters, letter) &&
        !request_is_oneway(request))
        control_await_disk(request, on_purged);
    else
        on_purged(request, 0);
}

const struct request_method control_dead_letter_methods[] = {
    {"ListDeadLetters", list_letters, .changes = false},
    {"GetDeadLetter", get_letter, .changes = false},
    {"Requeue", requeue, .changes = true, .begins = true},
    {"Purge", purge, .changes = true},
    {0},
};

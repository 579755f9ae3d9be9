/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: dead letters and the error queue. */

#include "supervisor/control/actors/actors.h"

#include "shared/base/cleanup.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/group/job-lookup.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/message/message-context.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/removal.h"
#include "supervisor/varlink/request-parts.h"
#include "supervisor/varlink/request.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The cost of changing a letter, relative to looking at one. */
#define CHANGE_COST 8

/* ---- parameters ---- */

/* Takes the parameter "filter"; without it, everything matches. False: an error has been sent. */
static bool take_filter(struct request *request, struct dead_letter_filter *ret)
{
    struct varlink_object given;
    struct varlink_bytes key;
    const char *cause;

    (void)varlink_object(&request->parameters, "filter", &given);
    key = varlink_bytes(&given, "key");
    if (key.data && strlen(key.data) != key.size)
        return request_refuse(request, "key", "text without NUL");
    if (varlink_int(&given, "until_at", 1) == 0) /* it would not bound anything */
        return request_refuse(request, "until_at", "1 or more");
    cause = varlink_string(&given, "cause");
    *ret = (struct dead_letter_filter){
        .queue = varlink_choice(&given, "queue"),
        .reason = varlink_choice(&given, "reason"),
        .sender = varlink_string(&given, "sender"),
        .recipient = varlink_string(&given, "recipient"),
        .type = varlink_string(&given, "type"),
        .job = varlink_string(&given, "job"),
        .key = key.data,
        .cause = attempt_cause_from_string(cause ? cause : ""),
        .since = varlink_usec(&given, "since_at", 0),
        .until = varlink_usec(&given, "until_at", 0),
    };
    return true;
}

/* Why dead letters of durable jobs are not known, for people. NULL = they have been read. Valid
 * until the loop's next turn. */
static const char *letters_problem(const struct request *request)
{
    const struct control_context *context = request->context;

    return context->durable->letters_unread ? job_lookup_problem(context->groups) : NULL;
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
    problem = letters_problem(request);
    if (problem)
        request_fail_string(request, "StoreFailed", "problem", problem);
    else
        request_fail_int(request, "NoSuchDeadLetter", "id", id);
    return NULL;
}

static void report_problem(struct request_parts *parts)
{
    reply_string_if(request_part_reply(parts), "store_problem", letters_problem(parts->request));
}

/* ---- ListDeadLetters, GetDeadLetter ---- */

/* Newest first: the cursor of the call is the id of the last one looked at. */
struct letters {
    struct request_parts parts;
    struct dead_letter_filter filter; /* texts borrowed from the call */
    struct dead_letter_walk walk;
};

#define letters_of(pointer) list_entry(pointer, struct letters, parts)

static void report_counts(struct reply *reply, const struct dead_letters *letters)
{
    reply_array(reply, "counts");
    for (unsigned i = 0; i < _DEAD_N_REASONS; i++) {
        if (letters->tally->counts[i] == 0)
            continue;
        reply_object(reply, NULL);
        reply_string(reply, "reason", dead_letter_reason_to_string((enum dead_letter_reason)i));
        reply_uint(reply, "count", letters->tally->counts[i]);
        reply_end_object(reply);
    }
    reply_end_array(reply);
    reply_uint(reply, "evicted", letters->tally->n_evicted);
}

static bool step_letters(struct request_parts *parts)
{
    struct letters *letters = letters_of(parts);
    const struct dead_letter *letter = dead_letter_walk_next(&letters->walk);

    if (!letter)
        return false;
    if (parts->cursor != 0 && letter->id >= parts->cursor)
        return true; /* on an earlier page */
    parts->cursor = letter->id;
    if (dead_letter_matches(letter, &letters->filter))
        report_dead_letter(request_part_item(parts), NULL, parts->request, letter, false);
    return true;
}

static void finish_letters(struct request_parts *parts)
{
    report_counts(request_part_reply(parts), &parts->request->context->messages->dead_letters);
    report_problem(parts);
}

static void free_letters(struct request_parts *parts)
{
    dead_letter_walk_end(&letters_of(parts)->walk);
    free(letters_of(parts));
}

/* Those of messages can be looked at while the disk does not answer. */
static bool is_disk_slow(const struct request *request)
{
    const struct store *store = request->context->durable->store;

    return store && store_is_slow(store);
}

static void list_letters(struct request *request)
{
    struct dead_letter_filter filter;
    struct letters *letters;

    if (!take_filter(request, &filter))
        return;
    if (!is_disk_slow(request) && control_await_letters(request))
        return;
    letters = request_allocate(request, sizeof(*letters));
    if (!letters)
        return;
    letters->parts.step = step_letters;
    letters->parts.finish = finish_letters;
    letters->parts.free = free_letters;
    letters->filter = filter;
    dead_letter_walk_begin(&letters->walk, &request->context->messages->dead_letters, true);
    request_in_pages(request, &letters->parts, "letters");
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

/* A walk over the letters that match and were there when it began, or one letter. */
struct change {
    struct request_parts parts;
    bool has_one;
    struct dead_letter *one;          /* until it is changed */
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

    if (change->unwritten && !change->wait)
        change->wait = removal_await(request->context->durable->store, on_written, change);
    return change->wait;
}

static struct dead_letter *next_letter(struct change *change)
{
    struct dead_letter *letter;

    if (change->has_one)
        return TAKE_PTR(change->one);
    letter = dead_letter_walk_next(&change->walk);
    return letter && letter->id <= change->last ? letter : NULL;
}

/* Changes the next letter if it matches. */
static bool change_next(struct request_parts *parts)
{
    struct change *change = change_of(parts);
    struct dead_letter *letter = next_letter(change);

    if (!letter) {
        parts->waits = requeue_is_pending(&change->requeue) || is_writing(change);
        return parts->waits;
    }
    if (change->has_one || dead_letter_matches(letter, &change->filter)) {
        change->apply(change, letter);
        (void)request_part_full(parts, CHANGE_COST - 1);
    }
    return true;
}

static void free_change(struct request_parts *parts)
{
    dead_letter_walk_end(&change_of(parts)->walk);
    requeue_deinit(&change_of(parts)->requeue);
    removal_wait_free(change_of(parts)->wait);
    free(change_of(parts));
}

static void on_settled(struct requeue *requeue)
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

/* Either an id or a filter. */
static bool take_which(struct request *request)
{
    const bool has_id = request_has(request, "id"), dry_run = request_bool(request, "dry_run");

    if (has_id == request_has(request, "filter"))
        return request_refuse(request, "id", "either this or filter");
    return !has_id || !dry_run || request_refuse(request, "dry_run", "only with filter");
}

/* Changes the letter with the call's id, or all that match its filter. */
static void change(struct request *request, const char *to,
                   void (*apply)(struct change *, struct dead_letter *),
                   void (*finish)(struct request_parts *))
{
    struct dead_letters *letters = &request->context->messages->dead_letters;
    const bool has_one = request_has(request, "id");
    struct dead_letter_filter filter;
    struct dead_letter *one = NULL;
    struct change *change;

    if (!take_filter(request, &filter))
        return;
    if (has_one && !(one = find_letter(request, request_int(request, "id", 0))))
        return;
    if (!has_one && control_await_letters(request))
        return;
    change = request_allocate(request, sizeof(*change));
    if (!change)
        return;
    change->parts =
        (struct request_parts){.step = change_next, .finish = finish, .free = free_change};
    change->has_one = has_one;
    change->one = one;
    change->filter = filter;
    change->apply = request_bool(request, "dry_run") ? count_match : apply;
    requeue_init(&change->requeue, request->context, to);
    change->requeue.settled = on_settled;
    change->last = letters->tally->last_id;
    dead_letter_walk_begin(&change->walk, letters, false);
    request_in_parts(request, &change->parts);
}

static void requeue_match(struct change *change, struct dead_letter *letter)
{
    requeue_letter(&change->requeue, letter);
}

static void finish_requeue(struct request_parts *parts)
{
    const struct change *change = change_of(parts);
    const struct requeue *requeue = &change->requeue;
    struct reply *reply = request_part_reply(parts);

    if (change->has_one && requeue->n_failed > 0) {
        request_begin_error(parts->request, "NotRequeued");
        reply_int(reply, "id", request_int(parts->request, "id", 0));
        reply_string(reply, "problem", requeue->problem);
        return;
    }
    reply_uint(reply, "requeued", requeue->n_requeued + change->n_counted);
    reply_uint(reply, "failed", requeue->n_failed);
    reply_string_if(reply, "problem", requeue->problem);
    if (change->has_one)
        reply_string_if(reply, "job", requeue->job);
    else
        report_problem(parts);
}

static void requeue(struct request *request)
{
    const char *to = request_string(request, "to");

    if (take_which(request) && (!to || control_find_actor(request, to)))
        change(request, to, requeue_match, finish_requeue);
}

static void purge_match(struct change *change, struct dead_letter *letter)
{
    change->unwritten |= letter->row != 0;
    dead_letter_take(change->walk.letters, letter);
    dead_letter_free(letter);
    change->n_purged++;
}

static void finish_purge(struct request_parts *parts)
{
    const struct change *change = change_of(parts);
    struct reply *reply = request_part_reply(parts);

    reply_uint(reply, "purged", change->n_purged + change->n_counted);
    if (change->error < 0)
        reply_string(reply, "store_problem",
                     store_problem(parts->request->context->durable->store));
    else if (!change->has_one)
        report_problem(parts);
}

static void purge(struct request *request)
{
    if (take_which(request))
        change(request, NULL, purge_match, finish_purge);
}

const struct request_method control_dead_letter_methods[] = {
    {"ListDeadLetters", list_letters, .changes = false},
    {"GetDeadLetter", get_letter, .changes = false},
    {"Requeue", requeue, .changes = true, .begins = true},
    {"Purge", purge, .changes = true},
    {0},
};

/* ---- after a start ---- */

static bool are_coming(const struct durable_jobs *durable)
{
    return durable->letters_unread && durable->store && durable_jobs_are_unread(durable);
}

static void drop(struct request *request)
{
    request->state = removal_wait_free(request->state);
}

/* Looks again each time that the store has read something. */
static void on_turn(void *userdata, int result)
{
    struct request *request = userdata;

    (void)result;
    drop(request);
    request->drop = NULL;
    request->method->call(request);
}

bool control_await_letters(struct request *request)
{
    const struct durable_jobs *durable = request->context->durable;

    if (!are_coming(durable))
        return false;
    request->state = removal_await(durable->store, on_turn, request);
    if (request->state)
        request->drop = drop;
    else
        request_internal(request, -ENOMEM);
    return true;
}

/* SPDX-License-Identifier: MIT */

/* io.troupe.Actors: dead letters and the error queue. */

#include "supervisor/control/actors/actors.h"

#include "shared/base/cleanup.h"
#include "supervisor/control/bulk.h"
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

static size_t text_size(const char *text)
{
    return text ? strlen(text) : 0;
}

/* Whether the text is part of the letter's job id or key, or of its own text, if the client may
 * read that. */
static bool has_text(const struct request *request, const struct dead_letter *letter,
                     const struct varlink_bytes *text)
{
    const struct topic *topic = &letter->topic;

    return !text->data || varlink_bytes_in(text, letter->job, text_size(letter->job)) ||
           varlink_bytes_in(text, topic->key, topic->key_size) ||
           (letter->text && access_letter(request, letter) &&
            varlink_bytes_in(text, letter->text, text_size(letter->text)));
}

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
    if (varlink_int(&given, "until_at", 1) == 0) /* 0 would mean: no bound */
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

/* Returns a sentence why dead letters of durable jobs are not known; NULL = they have been read.
 * Valid until the loop's next turn. */
static const char *letters_problem(const struct request *request)
{
    const struct control_context *context = request->context;

    return context->durable->letters_unread ? job_lookup_problem(context->groups) : NULL;
}

/* Returns NULL if the call waits for the letter, or an error has been sent. */
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

/* ---- a walk over the letters that match ---- */

struct letters {
    struct bulk bulk;
    bool has_one;
    struct dead_letter *one;          /* the only one, until it is visited */
    struct dead_letter_filter filter; /* texts borrowed from the call */
    struct varlink_bytes text;        /* see has_text(); none = any */
    struct dead_letter_walk walk;
    void (*visit)(struct letters *letters, struct dead_letter *letter);
    uint64_t last;  /* higher ids were on an earlier page, or have come since the call */
    bool unwritten; /* the row of a purged letter may still be on disk */
    int error;      /* of removing that row */
    struct removal_wait *wait;
    char job[PROTOCOL_ID_TEXT]; /* the new id of the last job that was sent again */
};

#define letters_of(pointer) list_entry(bulk_of(pointer), struct letters, bulk)

static void on_removed(void *userdata, int result)
{
    struct letters *letters = userdata;

    letters->wait = removal_wait_free(letters->wait);
    letters->unwritten = false;
    letters->error = result;
    request_parts_resume(&letters->bulk.parts);
}

/* Returns whether the call waits until rows are removed from disk. */
static bool is_removing(struct letters *letters)
{
    if (letters->unwritten && !letters->wait)
        letters->wait =
            removal_await(letters->bulk.context->durable->store, false, on_removed, letters);
    return letters->wait;
}

static bool step(struct request_parts *parts)
{
    struct letters *letters = letters_of(parts);
    struct dead_letter *letter =
        letters->has_one ? TAKE_PTR(letters->one) : dead_letter_walk_next(&letters->walk);

    if (!letter) {
        parts->waits = letters->bulk.n_writes > 0 || is_removing(letters);
        return parts->waits;
    }
    if (letter->id > letters->last)
        return true;
    parts->cursor = letter->id;
    if (letters->has_one || (dead_letter_matches(letter, &letters->filter) &&
                             has_text(parts->request, letter, &letters->text)))
        letters->visit(letters, letter);
    return true;
}

static void free_letters(struct request_parts *parts)
{
    struct letters *letters = letters_of(parts);

    dead_letter_walk_end(&letters->walk);
    bulk_deinit(&letters->bulk);
    removal_wait_free(letters->wait);
    free(letters);
}

/* Begins with all letters that match; the caller sets `visit`. NULL = an error has been sent. */
static struct letters *letters_new(struct request *request, const struct dead_letter_filter *filter,
                                   bool newest_first)
{
    struct dead_letters *all = &request->context->messages->dead_letters;
    struct letters *letters = request_allocate(request, sizeof(*letters));
    struct varlink_object given;

    if (!letters)
        return NULL;
    bulk_init(&letters->bulk, request);
    letters->bulk.parts.step = step;
    letters->bulk.parts.free = free_letters;
    letters->filter = *filter;
    if (varlink_object(&request->parameters, "filter", &given))
        letters->text = varlink_bytes(&given, "text");
    letters->last = all->tally->last_id;
    dead_letter_walk_begin(&letters->walk, all, newest_first);
    return letters;
}

/* ---- ListDeadLetters, GetDeadLetter ---- */

static void list_letter(struct letters *letters, struct dead_letter *letter)
{
    struct request_parts *parts = &letters->bulk.parts;

    report_dead_letter(request_part_item(parts), NULL, parts->request, letter, false);
}

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

static void finish_letters(struct request_parts *parts)
{
    report_counts(request_part_reply(parts), &parts->request->context->messages->dead_letters);
    report_problem(parts);
}

/* Whether to list only dead letters of messages, because the disk does not answer. */
static bool is_disk_slow(const struct request *request)
{
    const struct store *store = request->context->durable->store;

    return store && store_is_slow(store);
}

/* Lists letters, newest first. The cursor of the call is the id of the last letter looked at. */
static void list_letters(struct request *request)
{
    const int64_t cursor = request_int(request, "cursor", 0);
    struct dead_letter_filter filter;
    struct letters *letters;

    if (!take_filter(request, &filter))
        return;
    if (!is_disk_slow(request) && control_await_letters(request))
        return;
    letters = letters_new(request, &filter, true);
    if (!letters)
        return;
    letters->visit = list_letter;
    letters->bulk.parts.finish = finish_letters;
    if (cursor > 0)
        letters->last = (uint64_t)cursor - 1;
    request_in_pages(request, &letters->bulk.parts, "letters");
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

/* Checks that the call has either an id or a filter. False: an error has been sent. */
static bool take_which(struct request *request)
{
    const bool has_id = request_has(request, "id"), dry_run = request_bool(request, "dry_run");

    if (has_id == request_has(request, "filter"))
        return request_refuse(request, "id", "either this or filter");
    return !has_id || !dry_run || request_refuse(request, "dry_run", "only with filter");
}

static void count_letter(struct letters *letters, struct dead_letter *letter)
{
    letters->bulk.n_done++;
}

/* Changes the letter with the call's id, or all that match its filter. */
static void change(struct request *request,
                   void (*visit)(struct letters *letters, struct dead_letter *letter),
                   void (*finish)(struct request_parts *))
{
    const bool has_one = request_has(request, "id");
    struct dead_letter_filter filter;
    struct dead_letter *one = NULL;
    struct letters *letters;

    if (!take_filter(request, &filter))
        return;
    if (has_one && !(one = find_letter(request, request_int(request, "id", 0))))
        return;
    if (!has_one && control_await_letters(request))
        return;
    letters = letters_new(request, &filter, false);
    if (!letters)
        return;
    letters->has_one = has_one;
    letters->one = one;
    letters->bulk.dry_run = request_bool(request, "dry_run");
    letters->visit = letters->bulk.dry_run ? count_letter : visit;
    letters->bulk.parts.finish = finish;
    request_in_parts(request, &letters->bulk.parts);
}

static void requeue_one(struct letters *letters, struct dead_letter *letter)
{
    const char *to = request_string(letters->bulk.parts.request, "to");

    requeue_letter(&letters->bulk, letter, to, letters->job);
    (void)request_part_full(&letters->bulk.parts, CHANGE_COST - 1);
}

static void finish_requeue(struct request_parts *parts)
{
    const struct letters *letters = letters_of(parts);
    struct reply *reply = request_part_reply(parts);

    if (letters->has_one && letters->bulk.n_failed > 0) {
        request_begin_error(parts->request, "NotRequeued");
        reply_int(reply, "id", request_int(parts->request, "id", 0));
        reply_string(reply, "problem", letters->bulk.problem);
        return;
    }
    bulk_report(&letters->bulk, reply, "requeued");
    if (letters->has_one)
        reply_string_if(reply, "job", letters->job);
    else
        report_problem(parts);
}

static void requeue(struct request *request)
{
    const char *to = request_string(request, "to");

    if (take_which(request) && !control_await_rows(request) &&
        (!to || control_find_actor(request, to)))
        change(request, requeue_one, finish_requeue);
}

static void purge_one(struct letters *letters, struct dead_letter *letter)
{
    letters->unwritten |= letter->row != 0;
    dead_letter_take(letters->walk.letters, letter);
    dead_letter_free(letter);
    letters->bulk.n_done++;
    (void)request_part_full(&letters->bulk.parts, CHANGE_COST - 1);
}

static void finish_purge(struct request_parts *parts)
{
    const struct letters *letters = letters_of(parts);
    struct reply *reply = request_part_reply(parts);

    reply_uint(reply, "purged", letters->bulk.n_done);
    if (letters->error < 0)
        reply_string(reply, "store_problem", store_problem(letters->bulk.context->durable->store));
    else if (!letters->has_one)
        report_problem(parts);
}

static void purge(struct request *request)
{
    if (take_which(request))
        change(request, purge_one, finish_purge);
}

const struct request_method control_dead_letter_methods[] = {
    {"ListDeadLetters", list_letters, .changes = false},
    {"GetDeadLetter", get_letter, .changes = false},
    {"Requeue", requeue, .changes = true, .begins = true},
    {"Purge", purge, .changes = true},
    {0},
};

/* ---- after a start ---- */

/* Whether rows are still to be read, and the disk has not failed. */
static bool are_coming(const struct durable_jobs *durable)
{
    return durable->store && durable_jobs_are_unread(durable) &&
           store_state(durable->store) != STORE_FAILED;
}

static void drop(struct request *request)
{
    request->state = removal_wait_free(request->state);
}

/* Looks again each time that the store has read something. */
static void on_turn(void *userdata, int result)
{
    struct request *request = userdata;

    drop(request);
    request->drop = NULL;
    request->method->call(request);
}

bool control_await_rows(struct request *request)
{
    const struct durable_jobs *durable = request->context->durable;

    if (!are_coming(durable))
        return false;
    request->state = removal_await(durable->store, true, on_turn, request);
    if (request->state)
        request->drop = drop;
    else
        request_internal(request, -ENOMEM);
    return true;
}

bool control_await_letters(struct request *request)
{
    return request->context->durable->letters_unread && control_await_rows(request);
}

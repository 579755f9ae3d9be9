/* SPDX-License-Identifier: MIT */

/*
 * An example of actors: an office whose clerks get their post through exchanges. Each worker is a
 * clerk and logs its actions. Use troupectl to tell or ask one, for example:
 *
 *     troupectl ask office/0 clerk.subscribe --data 'post invoice berlin'
 *     troupectl tell post invoice.paid --key berlin --data 'number 7'
 *
 * The type of a message determines the clerk's action; its payload is a list of words:
 *
 *     clerk.subscribe EXCHANGE [TYPE [KEY]]
 *         Subscribes to an exchange. TYPE "*" stands for all types.
 *     clerk.unsubscribe EXCHANGE [TYPE [KEY]]
 *         Ends that subscription. Answers 1, or 0 if there was none.
 *     clerk.register NAME, clerk.deregister NAME
 *         Takes a name, or gives it up.
 *     clerk.remind MSEC PERIOD TEXT
 *         Gets a reminder after MSEC, and again every PERIOD. Answers the timer's id.
 *     clerk.forget [ID]
 *         Cancels this reminder, or all of them. Answers how many.
 *     clerk.question TEXT
 *         Answers "answer.polite" with TEXT.
 *     clerk.consult ADDRESS MSEC TEXT
 *         Asks another clerk. Uses "perhaps" as the answer if none arrives in time.
 *     clerk.watch ADDRESS
 *         Logs when that actor is gone.
 *     clerk.out
 *         Becomes nothing: handles no more letters.
 *     clerk.busy, clerk.back
 *         Puts letters aside; then handles all of them.
 *     spoilt
 *         Cannot be handled: the handler fails.
 *
 * Any other message is a letter, and is filed. A letter of the type "junk" is not handled.
 */

#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS     3
#define TEXT_SIZE 512

struct words {
    char text[TEXT_SIZE];
    char *word[WORDS];
    int count;
};

/* The last word has the rest of the payload in it. */
static int parse(struct words *words, struct troupe_message *message, int least)
{
    size_t size;
    const char *payload = troupe_message_payload(message, &size);

    *words = (struct words){.count = 0};
    if (size >= sizeof(words->text))
        return troupe_message_fail(message, EMSGSIZE, "too many words");
    memcpy(words->text, payload, size);
    for (char *at = words->text; at && *at && words->count < WORDS;) {
        words->word[words->count++] = at;
        at = words->count < WORDS ? strchr(at, ' ') : NULL;
        if (at)
            *at++ = '\0';
    }
    return words->count >= least ? 0 : troupe_message_fail(message, EINVAL, "too few words");
}

static int answer(struct troupe_message *message, const char *type, const char *text)
{
    /* The sender of a tell wants no answer. */
    if (troupe_message_ask(message) == 0)
        return 0;
    return troupe_message_reply(message, type, text, strlen(text));
}

static int answer_number(struct troupe_message *message, int r, uint64_t number)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    return r < 0 ? r : answer(message, "number", text);
}

/* ---- post ---- */

static int file(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    size_t size, key_size;
    const char *text = troupe_message_payload(message, &size);
    const char *key = troupe_message_key(message, &key_size);

    (void)actor;
    fprintf(stderr, "%s files %s%s%.*s%s: %s\n", (char *)userdata, troupe_message_type(message),
            key ? " for '" : "", key ? (int)key_size : 0, key ? key : "", key ? "'" : "", text);
    return TROUPE_HANDLED;
}

static int refuse(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    (void)actor;
    (void)message;
    (void)userdata;
    return TROUPE_NOT_HANDLED;
}

static int spoilt(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    (void)actor;
    (void)userdata;
    return troupe_message_fail(message, EILSEQ, "nobody can read this");
}

static int subscription(struct troupe_actor *actor, struct troupe_message *message, bool wanted)
{
    const char *type, *key;
    struct words words;
    troupe_ref exchange;
    int r;

    r = parse(&words, message, 1);
    if (r == 0)
        r = troupe_actor_lookup(actor, words.word[0], &exchange);
    if (r < 0)
        return r;
    type = words.count > 1 && strcmp(words.word[1], "*") != 0 ? words.word[1] : "";
    key = words.count > 2 ? words.word[2] : NULL;
    r = wanted ? troupe_actor_subscribe(actor, exchange, type, key, key ? strlen(key) : 0)
               : troupe_actor_unsubscribe(actor, exchange, type, key, key ? strlen(key) : 0);
    return answer_number(message, r, wanted ? 1 : (uint64_t)r);
}

static int subscribe(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    (void)userdata;
    return subscription(actor, message, true);
}

static int unsubscribe(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    (void)userdata;
    return subscription(actor, message, false);
}

static int take_name(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct words words;
    int r = parse(&words, message, 1);

    (void)userdata;
    return r < 0 ? r : answer_number(message, troupe_actor_register(actor, words.word[0]), 1);
}

static int drop_name(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct words words;
    int r = parse(&words, message, 1);

    (void)userdata;
    if (r == 0)
        r = troupe_actor_deregister(actor, words.word[0]);
    return answer_number(message, r, (uint64_t)r);
}

/* ---- reminders ---- */

static int remind(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct words words;
    troupe_ref self;
    uint64_t id = 0;
    int r;

    (void)userdata;
    r = parse(&words, message, 3);
    if (r == 0)
        r = troupe_actor_self(actor, &self);
    if (r < 0)
        return r;
    r = troupe_actor_timer_after(actor, self, strtoull(words.word[0], NULL, 10) * 1000, &id,
                                 "reminder", .text = words.word[2],
                                 .period_usec = strtoull(words.word[1], NULL, 10) * 1000);
    return answer_number(message, r, id);
}

static int forget(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct words words;
    troupe_ref self;
    int r;

    (void)userdata;
    r = parse(&words, message, 0);
    if (r == 0)
        r = troupe_actor_self(actor, &self);
    if (r == 0)
        r = words.count > 0 ? troupe_actor_timer_cancel(actor, strtoull(words.word[0], NULL, 10))
                            : troupe_actor_timer_cancel_type(actor, self, "reminder");
    return answer_number(message, r, (uint64_t)r);
}

/* ---- talking to others ---- */

static int question(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    size_t size;

    (void)actor;
    (void)userdata;
    return answer(message, "answer.polite", troupe_message_payload(message, &size));
}

/* While the clerk waits, its letters also wait; the other clerk continues. */
static int consult(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct troupe_future *future;
    struct words words;
    troupe_ref other;
    size_t size;
    int r;

    r = parse(&words, message, 3);
    if (r == 0)
        r = troupe_actor_lookup(actor, words.word[0], &other);
    if (r < 0)
        return r;
    r = troupe_actor_ask(actor, other, &future, "clerk.question", .text = words.word[2],
                         .timeout_usec = strtoull(words.word[1], NULL, 10) * 1000,
                         .reply_type = "answer", .default_type = "answer.none",
                         .default_data = "perhaps", .default_size = strlen("perhaps"));
    if (r < 0)
        return r;
    r = troupe_future_await(future, TROUPE_AWAIT_STASH);
    if (r == 0) {
        fprintf(stderr, "%s is told %s: %s\n", (char *)userdata, troupe_future_type(future),
                (const char *)troupe_future_payload(future, &size));
        r = answer(message, troupe_future_type(future), troupe_future_payload(future, &size));
    }
    troupe_future_free(future);
    return r;
}

static void mourn(struct troupe_actor *actor, struct troupe_future *future, void *userdata)
{
    size_t size;

    (void)actor;
    fprintf(stderr, "%s hears of an end: %s\n", (char *)userdata,
            (const char *)troupe_future_payload(future, &size));
    troupe_future_free(future);
}

static int watch(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    struct troupe_future *future;
    struct words words;
    troupe_ref other;
    int r;

    r = parse(&words, message, 1);
    if (r == 0)
        r = troupe_actor_lookup(actor, words.word[0], &other);
    if (r == 0)
        r = troupe_actor_monitor(actor, other, &future);
    if (r < 0)
        return r;
    troupe_future_then(future, mourn, userdata);
    return answer_number(message, 0, 1);
}

/* ---- being somebody else ---- */

static int out(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    (void)userdata;
    troupe_actor_become(actor, NULL, NULL);
    return answer_number(message, 0, 1);
}

static int while_busy(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    (void)userdata;
    if (strcmp(troupe_message_type(message), "clerk.back") != 0)
        return troupe_message_stash(message);
    troupe_actor_become_default(actor);
    return answer_number(message, 0, (uint64_t)troupe_actor_unstash_all(actor));
}

static int busy(struct troupe_actor *actor, struct troupe_message *message, void *userdata)
{
    troupe_actor_become(actor, while_busy, userdata);
    return answer_number(message, 0, 1);
}

static const struct {
    const char *type;
    troupe_message_fn fn;
} duties[] = {
    {"", file},
    {"junk", refuse},
    {"spoilt", spoilt},
    {"clerk", refuse},
    {"clerk.subscribe", subscribe},
    {"clerk.unsubscribe", unsubscribe},
    {"clerk.register", take_name},
    {"clerk.deregister", drop_name},
    {"clerk.remind", remind},
    {"clerk.forget", forget},
    {"clerk.question", question},
    {"clerk.consult", consult},
    {"clerk.watch", watch},
    {"clerk.out", out},
    {"clerk.busy", busy},
};

int main(void)
{
    struct troupe_worker *worker;
    struct troupe_actor *actor;
    void *name;
    int r;

    r = troupe_worker_new(&worker);
    if (r < 0)
        return troupe_worker_start_error(r);
    name = (void *)(uintptr_t)troupe_worker_name(worker);
    actor = troupe_worker_actor(worker);
    for (size_t i = 0; r == 0 && i < sizeof(duties) / sizeof(duties[0]); i++)
        r = troupe_actor_on_message(actor, duties[i].type, duties[i].fn, name);
    if (r == 0)
        r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/web/question.h"

#include "shared/base/cleanup.h"
#include <string.h>

struct question {
    struct list node;
    struct list waiters;
    char *key; /* NULL = not shared */
    question_join_fn join;
    struct varlink_client client; /* while it is pending */
    bool pending;
    usec_t asked_at;
    usec_t until;  /* pending: the time-out; else how long the outcome is valid */
    json_t *whole; /* replies so far, with `join` */
    struct outcome outcome;
};

void questions_init(struct questions *questions, const char *socket)
{
    *questions = (struct questions){.socket = socket};
    list_init(&questions->all);
}

static void question_free(struct questions *questions, struct question *question)
{
    questions->n--;
    questions->n_pending -= question->pending;
    list_unlink(&question->node);
    varlink_client_deinit(&question->client);
    varlink_reply_deinit(&question->outcome.reply);
    json_decref(question->whole);
    free(question->key);
    free(question);
}

void questions_deinit(struct questions *questions)
{
    list_for_each_safe (node, &questions->all)
        question_free(questions, list_entry(node, struct question, node));
}

static void tell(struct waiter *waiter, const struct outcome *outcome)
{
    list_unlink(&waiter->node);
    waiter->done(waiter, outcome);
}

/* The outcome is known. */
static void finish(struct questions *questions, struct question *question, usec_t now)
{
    if (question->pending) {
        question->pending = false;
        questions->n_pending--;
    }
    varlink_client_deinit(&question->client);
    question->outcome.at = now;
    question->until = question->key ? usec_add(question->asked_at, QUESTIONS_GOOD) : now;
    while (!list_empty(&question->waiters))
        tell(list_entry(list_first(&question->waiters), struct waiter, node), &question->outcome);
}

static void fail(struct questions *questions, struct question *question, int failure, usec_t now)
{
    question->outcome.failure = failure;
    finish(questions, question, now);
}

/* Returns a key that is the same for equal questions; NULL when out of memory. */
static char *make_key(const struct question_options *options)
{
    _cleanup_free_ char *parameters =
        json_dumps(options->parameters, JSON_COMPACT | JSON_SORT_KEYS);
    size_t size = parameters ? strlen(options->method) + strlen(parameters) + 2 : 0;
    char *key = parameters ? malloc(size) : NULL;

    if (key) {
        stpcpy(stpcpy(stpcpy(key, options->method), " "), parameters);
    }
    return key;
}

static struct question *find(struct questions *questions, const char *key, usec_t now)
{
    list_for_each (node, &questions->all) {
        struct question *question = list_entry(node, struct question, node);

        if (question->key && strcmp(question->key, key) == 0 &&
            (question->pending || now < question->until))
            return question;
    }
    return NULL;
}

/* Forgets the outcome that was known first. */
static void make_room(struct questions *questions)
{
    list_for_each_safe (node, &questions->all) {
        struct question *question = list_entry(node, struct question, node);

        if (questions->n < QUESTIONS_MAX)
            break;
        if (!question->pending)
            question_free(questions, question);
    }
}

/* Takes ownership of the key. */
static struct question *question_new(struct questions *questions, char *key, question_join_fn join,
                                     usec_t now)
{
    struct question *question = calloc(1, sizeof(*question));

    if (!question) {
        free(key);
        return NULL;
    }
    question->key = key;
    question->join = join;
    question->asked_at = now;
    question->client.fd = -1;
    list_init(&question->waiters);
    list_push_back(&questions->all, &question->node);
    questions->n++;
    return question;
}

/* Sends it, or fails. */
static void begin(struct questions *questions, struct question *question,
                  const struct question_options *options, usec_t now)
{
    int r = varlink_client_init(&question->client, questions->socket, 0);

    if (r == 0)
        r = varlink_client_send(&question->client, options->method,
                                json_incref(options->parameters), options->join != NULL);
    if (r < 0) {
        fail(questions, question, r, now);
        return;
    }
    question->pending = true;
    questions->n_pending++;
    question->until = usec_add(now, QUESTIONS_TIMEOUT);
}

static void refuse(struct waiter *waiter, int failure)
{
    const struct outcome outcome = {.failure = failure};

    tell(waiter, &outcome);
}

void questions_ask(struct questions *questions, const struct question_options *options, usec_t now,
                   struct waiter *waiter)
{
    _cleanup_free_ char *key = options->shared ? make_key(options) : NULL;
    struct question *question = key ? find(questions, key, now) : NULL;

    list_init(&waiter->node);
    if (question && !question->pending) {
        tell(waiter, &question->outcome);
        return;
    }
    if (question) {
        list_push_back(&question->waiters, &waiter->node);
        return;
    }
    if (questions->stopped || questions->n_pending >= QUESTIONS_PENDING_MAX) {
        refuse(waiter, questions->stopped ? -ECANCELED : -EBUSY);
        return;
    }
    make_room(questions);
    question = question_new(questions, TAKE_PTR(key), options->join, now);
    if (!question) {
        refuse(waiter, -ENOMEM);
        return;
    }
    list_push_back(&question->waiters, &waiter->node);
    begin(questions, question, options, now);
}

void questions_prepare(const struct questions *questions, struct poller *poller)
{
    list_for_each (node, &questions->all) {
        const struct question *question = list_entry(node, struct question, node);

        poller_until(poller, question->until);
        if (question->pending)
            poller_add(poller, question->client.fd, POLLIN);
    }
}

void questions_stop(struct questions *questions)
{
    questions->stopped = true;
    list_for_each (node, &questions->all) {
        struct question *question = list_entry(node, struct question, node);

        if (question->pending)
            fail(questions, question, -ECANCELED, 0);
    }
}

/* Keeps a reply, one of several or the last. Returns -errno, or whether more follow. */
static int take(struct question *question, struct varlink_reply *reply)
{
    bool more = reply->continues;
    int r = 0;

    if (question->join && !reply->error) {
        if (!question->whole)
            question->whole = json_object();
        r = question->whole ? question->join(question->whole, reply->parameters) : -ENOMEM;
        json_decref(reply->parameters);
        reply->parameters = json_incref(question->whole);
    }
    if (r == 0 && !more)
        question->outcome.reply = *reply;
    else
        varlink_reply_deinit(reply);
    return r < 0 ? r : more;
}

static void receive(struct questions *questions, struct question *question, usec_t now)
{
    struct varlink_reply reply;
    int r;

    do {
        r = varlink_client_receive(&question->client, &reply);
        if (r == -ETIMEDOUT && now < question->until)
            return;
        if (r == 0)
            r = take(question, &reply);
    } while (r > 0);
    if (r < 0)
        fail(questions, question, r, now);
    else
        finish(questions, question, now);
}

void questions_run(struct questions *questions, usec_t now)
{
    list_for_each_safe (node, &questions->all) {
        struct question *question = list_entry(node, struct question, node);

        if (question->pending)
            receive(questions, question, now);
        if (!question->pending && now >= question->until)
            question_free(questions, question);
    }
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/web/question.h"

#include "shared/base/cleanup.h"

/* How many replies are taken in a turn. At most as many as are sent to a browser in a turn, so that
 * a flood of events cannot overtake browsers that keep up. */
#define REPLIES_PER_TURN 16

void questions_init(struct questions *questions, const char *socket)
{
    *questions = (struct questions){.socket = socket};
    list_init(&questions->pending);
}

void question_init(struct question *question, void (*done)(struct question *question))
{
    *question = (struct question){
        .client = VARLINK_CLIENT_NULL, .timeout = QUESTIONS_TIMEOUT, .done = done};
    list_init(&question->node);
}

/* Streams do not count: they are bounded elsewhere. */
static bool counts(const struct question *question)
{
    return question->timeout != USEC_INFINITY;
}

/* Forgets the call, but not its outcome. */
static void end_call(struct question *question)
{
    if (list_linked(&question->node) && counts(question))
        question->questions->n_pending--;
    list_unlink(&question->node);
    varlink_client_deinit(&question->client);
}

bool question_is_pending(const struct question *question)
{
    return list_linked(&question->node);
}

void question_deinit(struct question *question)
{
    end_call(question);
    varlink_reply_deinit(&question->reply);
}

static void finish(struct question *question, int failure, usec_t now)
{
    end_call(question);
    question->failure = failure;
    question->at = now;
    question->done(question);
}

/* Takes ownership of `parameters`. Returns 0 or -errno. */
static int begin(struct questions *questions, struct question *question, const char *method,
                 json_t *parameters)
{
    const bool full = questions->n_pending >= QUESTIONS_PENDING_MAX;
    int r = questions->stopped ? -ECANCELED : full && counts(question) ? -EBUSY : 0;

    if (r == 0)
        r = varlink_client_init(&question->client, questions->socket, 0);
    if (r == 0)
        return varlink_client_send(&question->client, method, parameters, question->part != NULL);
    json_decref(parameters);
    return r;
}

void questions_ask(struct questions *questions, struct question *question, const char *method,
                   json_t *parameters, usec_t now)
{
    int r;

    question->questions = questions;
    r = begin(questions, question, method, parameters);
    if (r < 0) {
        finish(question, r, now);
        return;
    }
    question->until = usec_add(now, question->timeout);
    list_push_back(&questions->pending, &question->node);
    questions->n_pending += counts(question);
}

void questions_prepare(const struct questions *questions, struct poller *poller)
{
    list_for_each_entry (question, &questions->pending, struct question, node) {
        /* Replies that have been read do not make the descriptor readable. */
        poller_until(poller, question->unfinished ? 0 : question->until);
        poller_add(poller, question->client.fd, POLLIN);
    }
}

void questions_stop(struct questions *questions)
{
    questions->stopped = true;
    list_for_each_entry_safe (question, &questions->pending, struct question, node)
        finish(question, -ECANCELED, 0);
}

/* Takes a reply, one of several or the last. */
static void take(struct question *question, struct varlink_reply *reply, usec_t now)
{
    int r = question->part && !reply->error ? question->part(question, reply->parameters) : 0;

    if (r == 0 && (reply->error || !reply->continues)) {
        question->reply = *reply;
        finish(question, 0, now);
        return;
    }
    varlink_reply_deinit(reply);
    if (r < 0)
        finish(question, r, now);
}

static void receive(struct question *question, usec_t now)
{
    question->unfinished = false;
    for (unsigned n = 0; n < REPLIES_PER_TURN; n++) {
        struct varlink_reply reply;
        int r = varlink_client_receive(&question->client, &reply);

        if (r == -ETIMEDOUT && now < question->until)
            return;
        if (r < 0)
            finish(question, r, now);
        else
            take(question, &reply, now);
        if (!question_is_pending(question))
            return;
    }
    question->unfinished = true;
}

void questions_run(struct questions *questions, usec_t now)
{
    list_for_each_entry_safe (question, &questions->pending, struct question, node)
        receive(question, now);
}

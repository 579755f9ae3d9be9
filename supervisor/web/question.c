/* SPDX-License-Identifier: MIT */
#include "supervisor/web/question.h"

#include "shared/base/cleanup.h"

void questions_init(struct questions *questions, const char *socket)
{
    *questions = (struct questions){.socket = socket};
    list_init(&questions->pending);
}

void question_init(struct question *question, void (*done)(struct question *question))
{
    *question = (struct question){.client = VARLINK_CLIENT_NULL, .done = done};
    list_init(&question->node);
}

/* Forgets the call, but not its outcome. */
static void end_call(struct question *question)
{
    if (list_linked(&question->node))
        question->questions->n_pending--;
    list_unlink(&question->node);
    varlink_client_deinit(&question->client);
    json_decref(question->whole);
    question->whole = NULL;
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
    int r = questions->stopped                              ? -ECANCELED
            : questions->n_pending >= QUESTIONS_PENDING_MAX ? -EBUSY
                                                            : 0;

    if (r == 0)
        r = varlink_client_init(&question->client, questions->socket, 0);
    if (r == 0)
        return varlink_client_send(&question->client, method, parameters, question->join != NULL);
    json_decref(parameters);
    return r;
}

void questions_ask(struct questions *questions, struct question *question, const char *method,
                   json_t *parameters, question_join_fn join, usec_t now)
{
    int r;

    question->questions = questions;
    question->join = join;
    r = begin(questions, question, method, parameters);
    if (r < 0) {
        finish(question, r, now);
        return;
    }
    question->until = usec_add(now, QUESTIONS_TIMEOUT);
    list_push_back(&questions->pending, &question->node);
    questions->n_pending++;
}

void questions_prepare(const struct questions *questions, struct poller *poller)
{
    list_for_each (node, &questions->pending) {
        const struct question *question = list_entry(node, struct question, node);

        poller_until(poller, question->until);
        poller_add(poller, question->client.fd, POLLIN);
    }
}

void questions_stop(struct questions *questions)
{
    questions->stopped = true;
    list_for_each_safe (node, &questions->pending)
        finish(list_entry(node, struct question, node), -ECANCELED, 0);
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
        question->reply = *reply;
    else
        varlink_reply_deinit(reply);
    return r < 0 ? r : more;
}

static void receive(struct question *question, usec_t now)
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
    finish(question, r, now);
}

void questions_run(struct questions *questions, usec_t now)
{
    list_for_each_safe (node, &questions->pending)
        receive(list_entry(node, struct question, node), now);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/web/question.h"
#include "tests/unit/suite.h"
#include <sys/un.h>

/* A supervisor that answers when a test wants, and browsers that count what they get. */
static char directory[64], path[96];
static int listener;
static struct questions questions;
static usec_t now;

struct browser {
    struct question question;
    unsigned answers;
    int failure;
    json_int_t number;
};
static struct browser browsers[QUESTIONS_PENDING_MAX + 1];

static void on_done(struct question *question)
{
    struct browser *browser = list_entry(question, struct browser, question);

    browser->answers++;
    browser->failure = question->failure;
    browser->number = json_integer_value(json_object_get(question->reply.parameters, "n"));
}

static void set_up(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    strcpy(directory, "/tmp/test-question-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/sock", directory);
    strcpy(address.sun_path, path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(listener, 64), 0);
    questions_init(&questions, path);
    now = 1000 * USEC_PER_SEC;
    memset(browsers, 0, sizeof(browsers));
    for (size_t i = 0; i < ELEMENTS(browsers); i++)
        question_init(&browsers[i].question, on_done);
}

static void tear_down(void)
{
    questions_stop(&questions);
    for (size_t i = 0; i < ELEMENTS(browsers); i++)
        question_deinit(&browsers[i].question);
    close(listener);
    unlink(path);
    rmdir(directory);
}

static void ask(size_t browser, const char *target)
{
    questions_ask(&questions, &browsers[browser].question, "io.troupe.Test",
                  json_pack("{s:s}", "target", target), now);
}

/* Accepts a call and replies with a number. Returns false if there was no call. */
static bool reply(int number)
{
    char text[128];
    int fd = accept(listener, NULL, NULL);

    if (fd < 0)
        return false;
    ck_assert_int_gt(recv(fd, text, sizeof(text), 0), 0);
    snprintf(text, sizeof(text), "{\"parameters\":{\"n\":%d}}", number);
    (void)send(fd, text, strlen(text) + 1, MSG_NOSIGNAL); /* The caller may have gone. */
    questions_run(&questions, now);
    close(fd);
    return true;
}

static void expect(size_t browser, unsigned answers, json_int_t number)
{
    ck_assert_uint_eq(browsers[browser].answers, answers);
    ck_assert_int_eq(browsers[browser].number, number);
}

TEST(calls_at_a_time_are_bounded)
{
    char target[16];

    for (size_t i = 0; i < QUESTIONS_PENDING_MAX; i++) {
        snprintf(target, sizeof(target), "%zu", i);
        ask(i, target);
    }
    ask(QUESTIONS_PENDING_MAX, "one more");
    ck_assert_int_eq(browsers[QUESTIONS_PENDING_MAX].failure, -EBUSY);
    ck_assert(reply(1));
    ask(QUESTIONS_PENDING_MAX, "one more");
    expect(QUESTIONS_PENDING_MAX, 1, 0);
}

TEST(a_supervisor_that_hangs_is_given_up)
{
    struct poller poller;

    ask(0, "a");
    poller_reset(&poller);
    questions_prepare(&questions, &poller);
    ck_assert_uint_eq(poller.deadline, now + QUESTIONS_TIMEOUT);
    now += QUESTIONS_TIMEOUT - 1;
    questions_run(&questions, now);
    expect(0, 0, 0);
    now += 1;
    questions_run(&questions, now);
    expect(0, 1, 0);
    ck_assert_int_eq(browsers[0].failure, -ETIMEDOUT);
}

TEST(nothing_is_asked_any_more_after_the_stop)
{
    ask(0, "a");
    questions_stop(&questions);
    ask(1, "b");
    ck_assert_int_eq(browsers[0].failure, -ECANCELED);
    ck_assert_int_eq(browsers[1].failure, -ECANCELED);
    ck_assert_uint_eq(browsers[1].answers, 1);
}

TEST(a_browser_that_has_gone_is_not_told)
{
    ask(0, "a");
    question_deinit(&browsers[0].question);
    ck_assert(reply(1));
    expect(0, 0, 0);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};

/* SPDX-License-Identifier: MIT */
#include "worker/nats/inquiry.h"

#include <errno.h>
#include <stdio.h>

#define RETRY_USEC USEC_PER_SEC

static const struct {
    const char *method, *member, *parameter;
} questions[] = {
    [QUESTION_WAITS] = {"io.troupe.Jobs.Explain", NULL, "id"},
    [QUESTION_JOB] = {"io.troupe.Jobs.Get", "job", "id"},
    [QUESTION_DEATHS] = {"io.troupe.Supervisor.ListDeaths", "deaths", "job"},
    [QUESTION_GROUP] = {"io.troupe.Supervisor.Explain", "waits", "target"},
    [QUESTION_JOBS] = {"io.troupe.Jobs.List", "jobs", "group"},
    [QUESTION_GROUPS] = {"io.troupe.Supervisor.GetMetrics", "groups", NULL},
};

static bool is_about_flight(enum question_type type)
{
    return type < QUESTION_GROUP;
}

void inquiry_init(struct inquiry *inquiry, struct flights *flights, const struct config *config,
                  inquiry_fn answered, void *userdata)
{
    *inquiry = (struct inquiry){
        .flights = flights, .config = config, .answered = answered, .userdata = userdata};
    list_init(&inquiry->waiting);
    for (int i = 0; i < _N_QUESTIONS; i++) {
        inquiry->others[i].type = (enum question_type)i;
        list_init(&inquiry->others[i].link);
    }
}

static void disconnect(struct inquiry *inquiry)
{
    troupe_query_free(inquiry->query);
    inquiry->query = NULL;
    inquiry->asking = false;
}

void inquiry_deinit(struct inquiry *inquiry)
{
    disconnect(inquiry);
}

static enum question_type question_about(const struct flight *flight)
{
    if (flight->state != FLIGHT_DYING)
        return QUESTION_WAITS;
    return flight->job ? QUESTION_DEATHS : QUESTION_JOB;
}

static bool is_asked_about(const struct inquiry *inquiry, const struct flight *flight)
{
    return inquiry->asking && is_about_flight(inquiry->type) &&
           inquiry->flight == flight_sequence(flight);
}

void inquiry_ask(struct inquiry *inquiry, struct flight *flight)
{
    if (is_asked_about(inquiry, flight))
        inquiry->outdated |= inquiry->type != question_about(flight);
    else if (!list_linked(&flight->question.link))
        list_push_back(&inquiry->waiting, &flight->question.link);
}

void inquiry_ask_other(struct inquiry *inquiry, enum question_type type)
{
    struct question *question = &inquiry->others[type];

    if (!list_linked(&question->link) && !(inquiry->asking && inquiry->type == type))
        list_push_back(&inquiry->waiting, &question->link);
}

/* Returns what the current question is about. */
static struct flight *flight_of(const struct inquiry *inquiry)
{
    return is_about_flight(inquiry->type) ? flight_find(inquiry->flights, inquiry->flight) : NULL;
}

/* Calls the handler, unless the flight is gone. */
static void tell(struct inquiry *inquiry, enum inquiry_answer answer, struct troupe_query *query)
{
    struct flight *flight = flight_of(inquiry);

    if (flight || !is_about_flight(inquiry->type))
        inquiry->answered(inquiry->userdata, flight, inquiry->type, answer, query);
}

/* Returns 0 or -errno. */
static int begin(struct inquiry *inquiry)
{
    struct question *question = list_first_entry(&inquiry->waiting, struct question, link);
    const bool is_other = question == &inquiry->others[question->type];
    struct flight *flight = is_other ? NULL : list_entry(question, struct flight, question);
    const enum question_type type = is_other ? question->type : question_about(flight);
    char value[TROUPE_ID_SIZE], parameters[TROUPE_ID_SIZE + 16] = "{}";
    int r;

    (void)snprintf(value, sizeof(value), "%s", inquiry->config->group);
    if (flight)
        flight_id(flight, inquiry->config->stream, value);
    if (questions[type].parameter)
        (void)snprintf(parameters, sizeof(parameters), "{\"%s\":\"%s\"}", questions[type].parameter,
                       value);
    r = troupe_query_call(inquiry->query, questions[type].method, questions[type].member,
                          parameters, 0);
    if (r < 0)
        return r;
    list_unlink(&question->link);
    inquiry->asking = true;
    inquiry->type = type;
    inquiry->flight = flight ? flight_sequence(flight) : 0;
    inquiry->outdated = false;
    tell(inquiry, INQUIRY_BEGIN, NULL);
    return 0;
}

static void ask_again(struct inquiry *inquiry)
{
    struct flight *flight = flight_of(inquiry);

    if (flight)
        inquiry_ask(inquiry, flight);
    else if (!is_about_flight(inquiry->type))
        inquiry_ask_other(inquiry, inquiry->type);
}

static void end(struct inquiry *inquiry, enum inquiry_answer answer)
{
    inquiry->asking = false;
    if (inquiry->outdated)
        ask_again(inquiry);
    else
        tell(inquiry, answer, NULL);
}

/* Returns 0 when there is nothing to ask, or -errno: -EAGAIN when the answer has not come. */
static int go_on(struct inquiry *inquiry)
{
    int r = 0;

    while (inquiry->asking || !list_empty(&inquiry->waiting)) {
        if (!inquiry->asking)
            r = begin(inquiry);
        if (r == 0)
            r = troupe_query_next(inquiry->query, 0);
        if (r == 1 && !inquiry->outdated)
            tell(inquiry, INQUIRY_RECORD, inquiry->query);
        else if (r == 0)
            end(inquiry, INQUIRY_END);
        else if (r == -ESRCH || r == -ENOENT)
            end(inquiry, INQUIRY_UNKNOWN);
        else if (r == -ESHUTDOWN)
            end(inquiry, INQUIRY_LEFT);
        else if (r < 0)
            return r;
        r = 0;
    }
    return 0;
}

usec_t inquiry_process(struct inquiry *inquiry, usec_t now)
{
    bool asking;
    int r = 0;

    if (!inquiry->query && list_empty(&inquiry->waiting))
        return USEC_INFINITY;
    if (!inquiry->query && now < inquiry->not_before)
        return inquiry->not_before;
    if (!inquiry->query)
        r = troupe_query_new(&inquiry->query, NULL);
    if (r == 0)
        r = go_on(inquiry);
    if (r == 0 || r == -EAGAIN || r == -EINTR)
        return USEC_INFINITY;
    asking = inquiry->asking;
    disconnect(inquiry);
    if (asking)
        ask_again(inquiry);
    inquiry->not_before = now + RETRY_USEC;
    return inquiry->not_before;
}

int inquiry_fd(const struct inquiry *inquiry)
{
    /* Between questions, a closed connection would be readable forever. The next question notices
     * it. */
    return inquiry->asking ? troupe_query_fd(inquiry->query) : -1;
}

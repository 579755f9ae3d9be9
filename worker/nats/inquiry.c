/* SPDX-License-Identifier: MIT */
#include "worker/nats/inquiry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define RETRY_USEC USEC_PER_SEC

void inquiry_init(struct inquiry *inquiry, struct flights *flights, const char *stream,
                  inquiry_fn answered, void *userdata)
{
    *inquiry = (struct inquiry){
        .flights = flights, .stream = stream, .answered = answered, .userdata = userdata};
    list_init(&inquiry->waiting);
}

static void inquiry_disconnect(struct inquiry *inquiry)
{
    troupe_query_free(inquiry->query);
    inquiry->query = NULL;
}

void inquiry_deinit(struct inquiry *inquiry)
{
    inquiry_disconnect(inquiry);
}

void inquiry_ask(struct inquiry *inquiry, struct flight *flight)
{
    if (!list_linked(&flight->inquiry) && inquiry->current != flight_sequence(flight))
        list_push_back(&inquiry->waiting, &flight->inquiry);
    else if (inquiry->current == flight_sequence(flight) && inquiry->state != flight->state)
        inquiry->outdated = true;
}

static enum inquiry_question question_about(const struct flight *flight)
{
    if (flight->state != FLIGHT_DEAD)
        return INQUIRY_WAITS;
    return flight->job ? INQUIRY_DEATHS : INQUIRY_JOB;
}

static int inquiry_begin(struct inquiry *inquiry)
{
    static const struct {
        const char *method, *member, *parameter;
    } questions[] = {
        [INQUIRY_WAITS] = {"io.troupe.Jobs.Explain", NULL, "id"},
        [INQUIRY_JOB] = {"io.troupe.Jobs.Get", "job", "id"},
        [INQUIRY_DEATHS] = {"io.troupe.Supervisor.ListDeaths", "deaths", "job"},
    };
    struct flight *flight = list_entry(list_first(&inquiry->waiting), struct flight, inquiry);
    const enum inquiry_question question = question_about(flight);
    char id[TROUPE_ID_SIZE], parameters[TROUPE_ID_SIZE + 16];
    int r;

    flight_id(flight, inquiry->stream, id);
    (void)snprintf(parameters, sizeof(parameters), "{\"%s\":\"%s\"}", questions[question].parameter,
                   id);
    r = troupe_query_call(inquiry->query, questions[question].method, questions[question].member,
                          parameters, 0);
    if (r < 0)
        return r;
    if (question == INQUIRY_DEATHS) { /* a lost connection may have cut an earlier answer */
        free(flight->reports);
        flight->reports = NULL;
    }
    list_unlink(&flight->inquiry);
    inquiry->question = question;
    inquiry->current = flight_sequence(flight);
    inquiry->state = flight->state;
    inquiry->outdated = false;
    return 0;
}

/* After an answer that is too old, asks again. */
static void inquiry_end(struct inquiry *inquiry, enum inquiry_answer answer)
{
    struct flight *flight = flight_find(inquiry->flights, inquiry->current);

    inquiry->current = 0;
    if (flight && inquiry->outdated)
        inquiry_ask(inquiry, flight);
    else if (flight)
        inquiry->answered(inquiry->userdata, flight, inquiry->question, answer, NULL);
}

static void inquiry_tell(struct inquiry *inquiry)
{
    struct flight *flight = flight_find(inquiry->flights, inquiry->current);

    if (flight && !inquiry->outdated)
        inquiry->answered(inquiry->userdata, flight, inquiry->question, INQUIRY_RECORD,
                          inquiry->query);
}

/* Returns 0 when there is nothing to ask, or -errno: -EAGAIN when the answer has not come. */
static int inquiry_go_on(struct inquiry *inquiry)
{
    for (;;) {
        int r = 0;

        if (inquiry->current == 0 && list_empty(&inquiry->waiting))
            return 0;
        if (inquiry->current == 0)
            r = inquiry_begin(inquiry);
        if (r == 0)
            r = troupe_query_next(inquiry->query, 0);
        if (r == 1)
            inquiry_tell(inquiry);
        else if (r == 0 || r == -ESRCH || r == -ESHUTDOWN)
            inquiry_end(inquiry, r == 0        ? INQUIRY_END
                                 : r == -ESRCH ? INQUIRY_UNKNOWN
                                               : INQUIRY_LEFT);
        else
            return r;
    }
}

usec_t inquiry_process(struct inquiry *inquiry, usec_t now)
{
    struct flight *flight;
    int r = 0;

    if (!inquiry->query && list_empty(&inquiry->waiting))
        return USEC_INFINITY;
    if (!inquiry->query && now < inquiry->not_before)
        return inquiry->not_before;
    if (!inquiry->query)
        r = troupe_query_new(&inquiry->query, NULL);
    if (r == 0)
        r = inquiry_go_on(inquiry);
    if (r == 0 || r == -EAGAIN || r == -EINTR)
        return USEC_INFINITY;
    /* Asks it again over another connection. */
    inquiry_disconnect(inquiry);
    flight = flight_find(inquiry->flights, inquiry->current);
    inquiry->current = 0;
    if (flight)
        inquiry_ask(inquiry, flight);
    inquiry->not_before = now + RETRY_USEC;
    return inquiry->not_before;
}

int inquiry_fd(const struct inquiry *inquiry)
{
    /* Between questions, a closed connection would be readable forever. The next question notices
     * it. */
    return inquiry->query && inquiry->current != 0 ? troupe_query_fd(inquiry->query) : -1;
}

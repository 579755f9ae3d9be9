/* SPDX-License-Identifier: MIT */
#include "worker/nats/inquiry.h"

#include <errno.h>
#include <stdio.h>

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

static int inquiry_send(struct inquiry *inquiry, const struct flight *flight,
                        enum inquiry_step step)
{
    static const struct {
        const char *method, *member, *parameter;
    } questions[] = {
        [INQUIRY_JOB] = {"io.troupe.Jobs.Get", "job", "id"},
        [INQUIRY_WAITS] = {"io.troupe.Jobs.Explain", "waits", "id"},
        [INQUIRY_DEATHS] = {"io.troupe.Supervisor.ListDeaths", "deaths", "job"},
    };
    char id[TROUPE_ID_SIZE], parameters[TROUPE_ID_SIZE + 16];

    flight_id(flight, inquiry->stream, id);
    (void)snprintf(parameters, sizeof(parameters), "{\"%s\":\"%s\"}", questions[step].parameter,
                   id);
    inquiry->step = step;
    inquiry->next = INQUIRY_OVER;
    return troupe_query_call(inquiry->query, questions[step].method, questions[step].member,
                             parameters, 0);
}

static int inquiry_begin(struct inquiry *inquiry)
{
    struct flight *flight = list_entry(list_first(&inquiry->waiting), struct flight, inquiry);
    int r = inquiry_send(inquiry, flight, INQUIRY_JOB);

    if (r < 0)
        return r;
    list_unlink(&flight->inquiry);
    inquiry->current = flight_sequence(flight);
    inquiry->state = flight->state;
    inquiry->outdated = false;
    return 0;
}

/* The flight that the answer is about; NULL if it is gone meanwhile, or has changed. */
static struct flight *inquiry_flight(const struct inquiry *inquiry)
{
    return inquiry->outdated ? NULL : flight_find(inquiry->flights, inquiry->current);
}

static void inquiry_tell(struct inquiry *inquiry, struct troupe_query *query)
{
    struct flight *flight = inquiry_flight(inquiry);
    enum inquiry_step next = INQUIRY_OVER;

    if (flight)
        next = inquiry->answered(inquiry->userdata, flight, inquiry->step, query);
    if (inquiry->step == INQUIRY_JOB)
        inquiry->next = next;
}

/* The supervisor has answered with an error that says what it has of the job. */
static void inquiry_end_answer(struct inquiry *inquiry, enum inquiry_step step)
{
    inquiry->step = step;
    inquiry_tell(inquiry, NULL);
    inquiry->step = INQUIRY_JOB;
    inquiry->next = INQUIRY_OVER;
}

/* The answer has come to its end. Returns 0, or -errno. */
static int inquiry_end_step(struct inquiry *inquiry)
{
    struct flight *flight;

    if (inquiry->step != INQUIRY_JOB)
        inquiry_tell(inquiry, NULL);
    flight = inquiry_flight(inquiry);
    if (flight && inquiry->next != INQUIRY_OVER)
        return inquiry_send(inquiry, flight, inquiry->next);
    flight = flight_find(inquiry->flights, inquiry->current);
    inquiry->current = 0;
    if (flight && inquiry->outdated)
        inquiry_ask(inquiry, flight);
    return 0;
}

/* Returns 0 when there is nothing to ask, or -errno: -EAGAIN when the answer has not come. */
static int inquiry_go_on(struct inquiry *inquiry)
{
    int r = 0;

    while (r == 0) {
        if (inquiry->current == 0 && list_empty(&inquiry->waiting))
            return 0;
        if (inquiry->current == 0)
            r = inquiry_begin(inquiry);
        while (r == 0 && (r = troupe_query_next(inquiry->query, 0)) == 1) {
            inquiry_tell(inquiry, inquiry->query);
            r = 0;
        }
        if (r == -ESRCH || r == -ESHUTDOWN) {
            inquiry_end_answer(inquiry, r == -ESRCH ? inquiry->step : INQUIRY_LEFT);
            r = 0;
        }
        if (r == 0)
            r = inquiry_end_step(inquiry);
    }
    return r;
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
    /* While nothing is asked, an end of the connection is nothing to act on: it would be readable
     * for ever. The next question finds it. */
    return inquiry->query && inquiry->current != 0 ? troupe_query_fd(inquiry->query) : -1;
}

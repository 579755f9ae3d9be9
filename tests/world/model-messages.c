/* SPDX-License-Identifier: MIT */
#include "tests/world/model.h"

#define SESSIONS_MAX 4096

static struct {
    uint32_t heard[MODEL_HEARERS]; /* the last number, by hearer */
    uint32_t cancelled;            /* the last timer that was */
} sessions[SESSIONS_MAX];

void model_heard(uint32_t session, unsigned hearer, uint32_t number, bool again)
{
    uint32_t *last = &sessions[session % SESSIONS_MAX].heard[hearer];

    sim_expect(number > *last || (number == *last && again),
               "message %u of session %u came after %u", number, session, *last);
    *last = number;
}

void model_timer(uint32_t session, uint32_t number, usec_t due)
{
    sim_expect(model_has_come(due) || model_allowed & MODEL_CLOCK,
               "timer %u of session %u came early", number, session);
    sim_expect(sessions[session % SESSIONS_MAX].cancelled != number,
               "timer %u of session %u came after it was cancelled", number, session);
}

void model_timer_cancelled(uint32_t session, uint32_t number)
{
    sessions[session % SESSIONS_MAX].cancelled = number;
}

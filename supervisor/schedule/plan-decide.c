/* SPDX-License-Identifier: MIT */

/* The outcome of slots. */

#include "supervisor/schedule/plan-private.h"

#include "supervisor/event/event-id.h"
#include "supervisor/event/event.h"
#include "supervisor/group/group.h"
#include <stdio.h>
#include <string.h>

/* How many slots are taken up in one turn. */
#define SLOTS_PER_TURN 100

/* ---- the outcome ---- */

static void tell(struct plan *plan, const struct decided_slot *slot)
{
    static const char *const types[_SLOT_N_OUTCOMES] = {
        "schedule.fired",  "schedule.skipped", "schedule.missed",
        "schedule.paused", "schedule.refused",
    };
    const bool bad = slot->outcome == SLOT_MISSED || slot->outcome == SLOT_REFUSED;
    const char *why = slot_cause_to_string(slot->cause);
    char id[PROTOCOL_ID_TEXT], more[64] = "", text[512];

    if (plan->n_untold > 1)
        (void)snprintf(more, sizeof(more), ", like %u before it", plan->n_untold - 1);
    (void)snprintf(text, sizeof(text), "%s is %s%s%s%s",
                   slot_format_id(plan->config->name, slot->time, id),
                   slot_outcome_to_string(slot->outcome), more, why ? ": " : "", why ? why : "");
    plan->n_untold = 0;
    event_emit(plan->context->groups->events,
               (struct event){.level = bad ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
                              .type = types[slot->outcome],
                              .group = config_schedule_group(plan->config),
                              .job = slot->outcome == SLOT_FIRED ? id : NULL,
                              .message_id = bad ? EVENT_ID_SLOT_LOST : NULL,
                              .message = text});
}

/* Many slots in a row may be missed: they have one line a turn. */
static bool is_one_of_many(enum slot_outcome outcome)
{
    return outcome == SLOT_MISSED || outcome == SLOT_PAUSED;
}

/* Reports the slots that are not in the log yet, if their series ends. */
static void tell_untold(struct plan *plan, bool ends)
{
    if (plan->n_untold > 0 && ends)
        tell(plan, &plan->untold);
}

void plan_decide(struct plan *plan, int64_t slot, enum slot_outcome outcome, enum slot_cause cause)
{
    struct schedule_row *row = plan->row;

    /* The outcome comes first: after a crash in between, find_decided() finds it. */
    plan_note(plan, slot, outcome, cause);
    if (row->reached < slot)
        row->reached = slot;
    if (row->firing == slot)
        row->firing = 0;
    if (row->waiting == slot)
        row->waiting = 0;
    plan_write_row(plan);
}

/* Returns which of the last slots to forget: the oldest one, but for those whose jobs are live.
 * After a takeover, live jobs are found by their slots. */
static size_t choose_forgotten(const struct plan *plan, const struct schedule_row *row)
{
    struct decided_slot slot;

    for (size_t i = SCHEDULE_LAST_MAX; i-- > 0;)
        if (!slot_unpack(row->last[i], &slot) || slot.outcome != SLOT_FIRED ||
            !plan_job_is_live(plan, slot.time))
            return i;
    return SCHEDULE_LAST_MAX - 1;
}

void plan_note_in(const struct plan *plan, struct schedule_row *row,
                  const struct decided_slot *slot)
{
    memmove(row->last + 1, row->last, choose_forgotten(plan, row) * sizeof(row->last[0]));
    row->last[0] = slot_pack(slot);
    row->counts[slot->outcome]++;
}

void plan_note(struct plan *plan, int64_t slot, enum slot_outcome outcome, enum slot_cause cause)
{
    const struct decided_slot decided = {slot, outcome, cause};

    plan_note_in(plan, plan->row, &decided);
    plan_write_row(plan);
    tell_untold(plan, outcome != plan->untold.outcome);
    if (is_one_of_many(outcome)) {
        plan->untold = decided;
        plan->n_untold++;
    } else {
        tell(plan, &decided);
    }
}

/* ---- the decision ---- */

/* Asked in the order of the slots. With RandomizedDelaySec=, a slot may have to wait for the one
 * before it: it is late if both were due long ago. */
static bool is_late(struct plan *plan, int64_t slot, usec_t now)
{
    usec_t due = plan_due(plan, slot);

    if (due < plan->on_time)
        due = plan->on_time;
    if (slot > plan->row->seen && usec_sub(now, due) > PLAN_LATE)
        return true;
    plan->on_time = due;
    return false;
}

/* Whether CatchUp= does not ask for a slot that was late. */
static bool is_lost(const struct plan *plan, int64_t slot, usec_t now)
{
    const struct config_schedule *config = plan->config;
    int64_t next;

    if (config->catch_up == CONFIG_CATCH_UP_NONE)
        return true;
    if (config->catch_up_within != USEC_INFINITY &&
        usec_sub(now, plan_due(plan, slot)) > config->catch_up_within)
        return true;
    next = config->catch_up == CONFIG_CATCH_UP_LAST ? plan_next(plan, slot) : 0;
    return next != 0 && plan_due(plan, next) <= now;
}

static bool was_paused(const struct plan *plan, int64_t slot)
{
    const struct schedule_row *row = plan->row;

    return row->pause != PLAN_RUNS || (slot >= row->paused_at && slot <= row->resumed_at);
}

static bool is_to_be_skipped(struct plan *plan, int64_t slot)
{
    for (unsigned i = 0; i < SCHEDULE_SKIPS_MAX; i++)
        if (plan->row->skips[i] == slot) {
            plan->row->skips[i] = 0;
            return true;
        }
    return false;
}

/* Whether the slot is among those that were decided last. */
static bool find_decided(const struct plan *plan, int64_t slot, struct decided_slot *ret)
{
    for (unsigned i = 0; i < SCHEDULE_LAST_MAX; i++)
        if (slot_unpack(plan->row->last[i], ret) && ret->time == slot)
            return true;
    return false;
}

/* Whether it was decided just before a crash, or was fired before the clock was set back. */
static bool was_decided(const struct plan *plan, int64_t slot)
{
    struct decided_slot last, found;

    if (slot_unpack(plan->row->last[0], &last) && last.time == slot)
        return true;
    return find_decided(plan, slot, &found) && found.outcome == SLOT_FIRED;
}

/* Has the slot wait until no job is live. */
static void wait_for_end(struct plan *plan, int64_t slot)
{
    plan->row->waiting = slot;
    plan->row->reached = slot;
    plan_write_row(plan);
}

/* Applies Overlap= to a slot that comes while a job is live, or another slot waits for its end.
 * Returns false if the slot remains due. */
static bool overlap(struct plan *plan, int64_t slot)
{
    const int64_t waiting = plan->row->waiting;

    switch (plan->config->overlap) {
    case CONFIG_OVERLAP_BUFFER:
        return false;
    case CONFIG_OVERLAP_CANCEL:
        if (waiting > 0)
            plan_decide(plan, waiting, SLOT_SKIPPED, SLOT_CAUSE_REPLACED);
        wait_for_end(plan, slot);
        plan_cancel_jobs(plan);
        return true;
    case CONFIG_OVERLAP_BUFFER_ONE:
        if (waiting == 0) {
            wait_for_end(plan, slot);
            return true;
        }
        break;
    default:
        break;
    }
    plan_decide(plan, slot, SLOT_SKIPPED, SLOT_CAUSE_OVERLAP);
    return true;
}

static bool is_occupied(const struct plan *plan)
{
    return plan->config->overlap != CONFIG_OVERLAP_ALLOW &&
           (plan_is_running(plan) || plan->row->waiting > 0);
}

/* Decides a slot, or begins to. Returns false if it remains due. */
static bool take_up(struct plan *plan, int64_t slot, usec_t now)
{
    const bool late = is_late(plan, slot, now), paused = plan->row->pause != PLAN_RUNS;

    if (was_decided(plan, slot)) {
        plan->row->reached = slot;
    } else if (is_to_be_skipped(plan, slot)) {
        plan_decide(plan, slot, SLOT_SKIPPED, SLOT_CAUSE_REQUEST);
    } else if (plan_has_job(plan, slot)) {
        plan_decide(plan, slot, SLOT_FIRED, SLOT_CAUSE_NONE);
    } else if ((late || paused) && is_lost(plan, slot, now)) {
        plan_decide(plan, slot, was_paused(plan, slot) ? SLOT_PAUSED : SLOT_MISSED,
                    SLOT_CAUSE_NONE);
    } else if (paused) {
        return false;
    } else if (is_occupied(plan)) {
        return overlap(plan, slot);
    } else {
        plan_fire(plan, slot, late ? SLOT_CAUSE_LATE : SLOT_CAUSE_NONE);
    }
    return true;
}

/* Whether the slot's job was perhaps accepted, and was then lost with all that is not on disk. */
static bool has_lost_job(struct plan *plan, int64_t slot)
{
    const struct group *group = plan_group(plan);

    return slot == plan->lost && group && !group->config->durable && !plan_has_job(plan, slot);
}

/* Continues with a slot whose row was being written, or whose job was being accepted when the
 * supervisor ended. */
static void fire_again(struct plan *plan, int64_t slot, usec_t now)
{
    const bool late = is_late(plan, slot, now);
    struct decided_slot decided;

    if (find_decided(plan, slot, &decided))
        plan->row->firing = 0;
    else if (has_lost_job(plan, slot))
        plan_decide(plan, slot, SLOT_FIRED, SLOT_CAUSE_LOST);
    else if (late && is_lost(plan, slot, now) && !plan_has_job(plan, slot))
        plan_decide(plan, slot, SLOT_MISSED, SLOT_CAUSE_NONE);
    else
        plan_fire(plan, slot, late ? SLOT_CAUSE_LATE : SLOT_CAUSE_NONE);
}

/* Takes up the next slot that is due. Returns false if there is nothing to do now. */
static bool take_next(struct plan *plan, usec_t now)
{
    struct schedule_row *row = plan->row;
    struct decided_slot decided;
    int64_t slot;

    if (plan->context->stopped || plan_obstacle(plan) || !plan_attach(plan))
        return false;
    if (row->firing > 0) {
        fire_again(plan, row->firing, now);
        return true;
    }
    if (row->waiting > 0 && find_decided(plan, row->waiting, &decided))
        row->waiting = 0;
    if (row->waiting > 0 && row->pause == PLAN_RUNS && !plan_is_running(plan)) {
        plan_fire(plan, row->waiting, SLOT_CAUSE_NONE);
        return true;
    }
    slot = plan_next(plan, row->reached);
    return slot != 0 && plan_due(plan, slot) <= now && take_up(plan, slot, now);
}

/* ---- time ---- */

/* The clock was set back by a lot: the slots until `reached` come again. */
static void begin_again(struct plan *plan, usec_t realtime)
{
    const int64_t now = plan_now(plan);
    struct schedule_row *row = plan->row;

    plan->on_time = usec_min(plan->on_time, realtime);
    if (row->seen > now)
        row->seen = now;
    if (!plan->known || row->reached <= now + PLAN_CLOCK_BACK)
        return;
    log_warning("schedule %s: the clock was set back; it starts again at the new time",
                plan->config->name);
    row->reached = now;
    plan_write_row(plan);
}

/* Waits for the first slot that is not due. A due slot that could not be taken up stays on time,
 * however long that lasts, unless an undecided slot before it is late: `seen` covers all slots
 * before it. */
static void arm(struct plan *plan, usec_t now)
{
    struct schedule_row *row = plan->row;
    int64_t slot = plan_next(plan, row->reached > row->seen ? row->reached : row->seen);
    bool late = row->pause != PLAN_RUNS;
    usec_t at;

    for (unsigned n = 0; n < SLOTS_PER_TURN && slot != 0 && plan_due(plan, slot) <= now; n++) {
        late = late || is_late(plan, slot, now);
        if (!late)
            row->seen = slot;
        slot = plan_next(plan, slot);
    }
    alarm_stop(&plan->alarm);
    if (slot == 0)
        return;
    at = plan_due(plan, slot);
    alarm_set_at(&plan->alarm, at > now ? at : now + USEC_PER_SEC);
}

void plan_step(struct plan *plan)
{
    const usec_t now = plan->context->groups->alarms->realtime();
    unsigned n = 0;

    if (plan->context->stopped || !plan->known)
        return;
    begin_again(plan, now);
    while (n < SLOTS_PER_TURN && take_next(plan, now))
        n++;
    tell_untold(plan, true);
    if (n == SLOTS_PER_TURN)
        plan_review(plan);
    else
        arm(plan, now);
}

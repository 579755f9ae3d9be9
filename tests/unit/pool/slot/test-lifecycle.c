/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/slot/lifecycle.h"
#include "tests/unit/suite.h"

#define S(name) LIFECYCLE_##name
#define E(name) LIFECYCLE_EVENT_##name
#define A(name) ((unsigned)LIFECYCLE_ACTION_##name)

static bool ignored(enum lifecycle_state state, enum lifecycle_event event)
{
    return lifecycle_next(state, event).actions == LIFECYCLE_IGNORED;
}

static void expect(enum lifecycle_state state, enum lifecycle_event event, enum lifecycle_state to,
                   unsigned actions)
{
    struct lifecycle_transition next = lifecycle_next(state, event);
    ck_assert_msg(next.state == to && next.actions == actions, "%s + %s -> %s with %#x",
                  lifecycle_state_to_string(state), lifecycle_event_to_string(event),
                  lifecycle_state_to_string(next.state), next.actions);
}

static bool has_process(enum lifecycle_state state)
{
    return state >= S(STARTING) && state <= S(KILLING);
}

#define ANY (1u << E(RESET))

TEST(each_state_handles_these_events_and_ignores_all_others)
{
    static const unsigned dying = 1u << E(EXITED) | 1u << E(VIOLATION);
    static const unsigned at_work = 1u << E(WATCHDOG) | 1u << E(TERMINATED);
    static const unsigned handled[_LIFECYCLE_N_STATES] = {
        [S(STOPPED)] = ANY | 1u << E(START) | 1u << E(ADOPTED),
        [S(STARTING)] = ANY | dying | 1u << E(SPAWN_FAILED) | 1u << E(READY) |
                        1u << E(START_TIMEOUT) | 1u << E(TERMINATED) | 1u << E(STOP),
        [S(IDLE)] = ANY | dying | at_work | 1u << E(LOST) | 1u << E(STOP) | 1u << E(JOB_ASSIGNED),
        [S(BUSY)] = ANY | dying | at_work | 1u << E(LOST) | 1u << E(STOP) | 1u << E(JOB_ENDED) |
                    1u << E(JOB_TIMEOUT),
        [S(STOPPING)] = ANY | dying | at_work | 1u << E(JOB_ENDED) | 1u << E(JOB_TIMEOUT) |
                        1u << E(STOP_TIMEOUT),
        [S(KILLING)] = ANY | dying | 1u << E(SPAWN_FAILED) | 1u << E(STOP_TIMEOUT),
        [S(BACKOFF)] =
            ANY | 1u << E(STOP) | 1u << E(RESTART_OVER) | 1u << E(LIMIT_HIT) | 1u << E(NOT_WANTED),
        [S(FAILED)] = ANY | 1u << E(START) | 1u << E(STOP),
    };

    for (int s = 0; s < _LIFECYCLE_N_STATES; s++)
        for (int e = 0; e < _LIFECYCLE_N_EVENTS; e++)
            ck_assert_msg(ignored((enum lifecycle_state)s, (enum lifecycle_event)e) ==
                              !(handled[s] >> e & 1),
                          "%s + %s", lifecycle_state_to_string((enum lifecycle_state)s),
                          lifecycle_event_to_string((enum lifecycle_event)e));
}

TEST(an_ignored_event_changes_no_state)
{
    for (int s = 0; s < _LIFECYCLE_N_STATES; s++) {
        for (int e = 0; e < _LIFECYCLE_N_EVENTS; e++) {
            if (ignored((enum lifecycle_state)s, (enum lifecycle_event)e))
                ck_assert_int_eq(
                    (int)lifecycle_next((enum lifecycle_state)s, (enum lifecycle_event)e).state, s);
        }
    }
}

TEST(every_state_reaches_stopped_when_nobody_wants_it)
{
    static const enum lifecycle_event events[] = {E(STOP), E(STOP_TIMEOUT), E(EXITED),
                                                  E(NOT_WANTED)};
    for (int s = 0; s < _LIFECYCLE_N_STATES; s++) {
        enum lifecycle_state state = (enum lifecycle_state)s;
        for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
            state = lifecycle_next(state, events[i]).state;
        ck_assert_msg(state == S(STOPPED), "from %s",
                      lifecycle_state_to_string((enum lifecycle_state)s));
    }
}

TEST(every_state_can_get_back_to_idle)
{
    bool reaches[_LIFECYCLE_N_STATES] = {[S(IDLE)] = true};
    for (int round = 0; round < _LIFECYCLE_N_STATES; round++) {
        for (int s = 0; s < _LIFECYCLE_N_STATES; s++) {
            for (int e = 0; e < _LIFECYCLE_N_EVENTS; e++)
                reaches[s] |=
                    reaches[lifecycle_next((enum lifecycle_state)s, (enum lifecycle_event)e).state];
        }
    }
    for (int s = 0; s < _LIFECYCLE_N_STATES; s++)
        ck_assert_msg(reaches[s], "from %s", lifecycle_state_to_string((enum lifecycle_state)s));
}

TEST(a_process_is_spawned_only_where_there_is_none_and_buried_exactly_when_it_ends)
{
    for (int s = 0; s < _LIFECYCLE_N_STATES; s++) {
        for (int e = 0; e < _LIFECYCLE_N_EVENTS; e++) {
            struct lifecycle_transition next =
                lifecycle_next((enum lifecycle_state)s, (enum lifecycle_event)e);
            unsigned actions = next.actions == LIFECYCLE_IGNORED ? 0 : next.actions;
            bool before = has_process((enum lifecycle_state)s), after = has_process(next.state);
            ck_assert_int_eq((actions & A(SPAWN)) != 0, !before && after && e != E(ADOPTED));
            bool no_spawn = e == E(SPAWN_FAILED);
            ck_assert_int_eq((actions & A(REAP)) != 0, before && !after && !no_spawn);
            if (before && !after && !no_spawn)
                ck_assert_int_eq(e, E(EXITED));
        }
    }
}

TEST(it_is_announced_on_entering_idle_and_withdrawn_when_it_can_take_no_more_jobs)
{
    for (int s = 0; s < _LIFECYCLE_N_STATES; s++) {
        for (int e = 0; e < _LIFECYCLE_N_EVENTS; e++) {
            struct lifecycle_transition next =
                lifecycle_next((enum lifecycle_state)s, (enum lifecycle_event)e);
            unsigned actions = next.actions == LIFECYCLE_IGNORED ? 0 : next.actions;
            bool enters = s != S(IDLE) && next.state == S(IDLE);
            bool was_up = s == S(IDLE) || s == S(BUSY);
            bool is_up = next.state == S(IDLE) || next.state == S(BUSY);
            ck_assert_int_eq((actions & A(ANNOUNCE)) != 0, enters);
            ck_assert_int_eq((actions & A(WITHDRAW)) != 0, was_up && !is_up);
        }
    }
}

TEST(reaching_stopped_is_always_told)
{
    for (int s = 1; s < _LIFECYCLE_N_STATES; s++) {
        for (int e = 0; e < _LIFECYCLE_N_EVENTS; e++) {
            struct lifecycle_transition next =
                lifecycle_next((enum lifecycle_state)s, (enum lifecycle_event)e);
            if (next.state == S(STOPPED))
                ck_assert_uint_ne(next.actions & A(DOWN), 0);
        }
    }
}

TEST(an_old_restart_is_cancelled_and_the_tally_forgotten_before_a_new_spawn)
{
    ck_assert_uint_lt(A(RESET), A(SPAWN));
    ck_assert_uint_lt(A(CANCEL_RESTART), A(SPAWN));
    ck_assert_uint_lt(A(REAP), A(SCHEDULE));
    ck_assert_uint_lt(A(REAP), A(DOWN));
}

TEST(an_idle_worker_stops_now_a_busy_one_after_its_job_and_asking_twice_changes_nothing)
{
    expect(S(IDLE), E(STOP), S(STOPPING), A(WITHDRAW) | A(SEND_STOP));
    expect(S(BUSY), E(STOP), S(STOPPING), A(WITHDRAW));
    ck_assert(ignored(S(STOPPING), E(STOP)));
    ck_assert(ignored(S(KILLING), E(STOP)));
    expect(S(STOPPING), E(JOB_ENDED), S(STOPPING), A(SEND_STOP));
    expect(S(STOPPING), E(EXITED), S(STOPPED), A(REAP) | A(DOWN));
}

TEST(the_ladder_goes_from_terminate_to_kill)
{
    expect(S(STOPPING), E(STOP_TIMEOUT), S(KILLING), A(TERMINATE));
    expect(S(KILLING), E(STOP_TIMEOUT), S(KILLING), A(KILL));
    expect(S(STARTING), E(STOP), S(KILLING), A(TERMINATE));
    expect(S(STARTING), E(START_TIMEOUT), S(KILLING), A(TERMINATE));
    expect(S(BUSY), E(JOB_TIMEOUT), S(KILLING), A(WITHDRAW) | A(TERMINATE));
    expect(S(BUSY), E(WATCHDOG), S(KILLING), A(WITHDRAW) | A(ABORT));
    expect(S(BUSY), E(VIOLATION), S(KILLING), A(WITHDRAW) | A(KILL));
    expect(S(IDLE), E(VIOLATION), S(KILLING), A(WITHDRAW) | A(KILL));
}

TEST(one_that_is_said_to_be_dying_gets_no_job_any_more_and_is_made_sure_of)
{
    expect(S(IDLE), E(LOST), S(KILLING), A(WITHDRAW));
    expect(S(BUSY), E(LOST), S(KILLING), A(WITHDRAW));
    ck_assert(ignored(S(STARTING), E(LOST)));
    ck_assert(ignored(S(STOPPING), E(LOST)));
    ck_assert(ignored(S(KILLING), E(LOST)));
    ck_assert(ignored(S(BACKOFF), E(LOST)));
}

TEST(a_terminated_worker_goes_down_the_ladder_whatever_it_has_in_hand)
{
    expect(S(STARTING), E(TERMINATED), S(KILLING), A(TERMINATE));
    expect(S(IDLE), E(TERMINATED), S(KILLING), A(WITHDRAW) | A(TERMINATE));
    expect(S(BUSY), E(TERMINATED), S(KILLING), A(WITHDRAW) | A(TERMINATE));
    expect(S(STOPPING), E(TERMINATED), S(KILLING), A(TERMINATE));
    ck_assert(ignored(S(KILLING), E(TERMINATED)));
    ck_assert(ignored(S(BACKOFF), E(TERMINATED)));
    ck_assert(ignored(S(STOPPED), E(TERMINATED)));
    ck_assert(ignored(S(FAILED), E(TERMINATED)));
}

TEST(a_killed_worker_that_nobody_wants_ends_in_stopped_without_a_restart)
{
    expect(S(KILLING), E(EXITED), S(BACKOFF), A(REAP) | A(SCHEDULE));
    expect(S(BACKOFF), E(NOT_WANTED), S(STOPPED), A(DOWN));
}

TEST(a_death_is_followed_by_backoff_and_too_many_by_failed_until_a_reset)
{
    expect(S(BUSY), E(EXITED), S(BACKOFF), A(WITHDRAW) | A(REAP) | A(SCHEDULE));
    expect(S(BACKOFF), E(RESTART_OVER), S(STARTING), A(SPAWN));
    expect(S(STARTING), E(SPAWN_FAILED), S(BACKOFF), A(SCHEDULE));
    expect(S(KILLING), E(SPAWN_FAILED), S(BACKOFF), A(SCHEDULE));
    expect(S(BACKOFF), E(LIMIT_HIT), S(FAILED), 0);
    expect(S(FAILED), E(RESET), S(STARTING), A(RESET) | A(SPAWN));
    expect(S(FAILED), E(STOP), S(STOPPED), A(DOWN));
    expect(S(BACKOFF), E(STOP), S(STOPPED), A(CANCEL_RESTART) | A(DOWN));
}

TEST(states_and_events_have_names_of_their_own)
{
    for (int i = 0; i < _LIFECYCLE_N_EVENTS; i++) {
        ck_assert_ptr_nonnull(lifecycle_event_to_string((enum lifecycle_event)i));
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(lifecycle_event_to_string((enum lifecycle_event)i),
                             lifecycle_event_to_string((enum lifecycle_event)k));
    }
    for (int i = 0; i < _LIFECYCLE_N_STATES; i++) {
        for (int k = 0; k < i; k++)
            ck_assert_str_ne(lifecycle_state_to_string((enum lifecycle_state)i),
                             lifecycle_state_to_string((enum lifecycle_state)k));
    }
    ck_assert_str_eq(lifecycle_state_to_string(S(BACKOFF)), "backoff");
    ck_assert_str_eq(lifecycle_event_to_string(E(START_TIMEOUT)), "start-timeout");
}

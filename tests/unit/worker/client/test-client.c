/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake-daemon.h"
#include "tests/unit/suite.h"
#include <sys/time.h>

static struct troupe_result result = TROUPE_RESULT_INIT; /* of the last call */

static void end(void)
{
    troupe_result_release(&result);
    stop();
}

static int do_job(const struct troupe_job_options *options, const void *data, size_t size)
{
    troupe_result_release(&result);
    return troupe_client_do(client, GROUP, options, data, size, &result);
}

static int do_text(const char *text)
{
    return do_job(NULL, text, strlen(text));
}

static int next(uint64_t timeout)
{
    troupe_result_release(&result);
    return troupe_client_next(client, &result, timeout);
}

/* ---- connecting ---- */

TEST(test_no_socket_there_is_said, .bare = true)
{
    ck_assert_int_eq(troupe_client_connect(&client, "/nonexistent/troupe.sock"), -ENOENT);
}

TEST(test_path_that_no_socket_can_have_is_refused, .bare = true)
{
    char path[300];

    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    ck_assert_int_eq(troupe_client_connect(&client, path), -ENAMETOOLONG);
}

TEST(test_socket_is_found_by_the_environment, .bare = true)
{
    listen_there(WAKE_FUTEX);
    setenv("TROUPE_SOCKET", supervisor.path, 1);
    ck_assert_int_eq(pthread_create(&supervisor.thread, NULL, run, NULL), 0);
    ck_assert_int_eq(troupe_client_connect(&client, NULL), 0);
    unlink(supervisor.path);
    stop();
}

static const struct {
    const char *reply;
    int error;
} replies[] = {
    {"{\"error\":\"io.troupe.Jobs.NotPermitted\",\"parameters\":{\"needed\":\"root\"}}", -EPERM},
    {"{\"error\": \"io.troupe.Jobs.TooManyClients\", \"parameters\": {\"maximum\": 1}}", -EUSERS},
    {"{\"error\":\"io.troupe.Jobs.BadVersion\"}", -EPROTO},
    {"{\"error\":\"io.troupe.Jobs.Stopping\"}", -ESHUTDOWN},
    {"{\"error\":\"io.troupe.Jobs.Restarting\"}", -ERESTART},
    {"{\"error\":\"org.varlink.service.MethodNotFound\"}", -EPROTO},
    {"{\"parameters\":{\"descriptors\":3}}", -EPROTO},
    {"", -EPROTO},
};

TEST(test_refusal_of_the_connection_becomes_an_errno, .n = ELEMENTS(replies), .bare = true)
{
    listen_there(WAKE_FUTEX);
    supervisor.reply = replies[_i].reply;
    ck_assert_int_eq(connect_there(), replies[_i].error);
    pthread_join(supervisor.thread, NULL);
}

TEST(test_odd_number_of_descriptors_is_refused, .first = 1, .n = 4, .bare = true)
{
    listen_there(WAKE_EVENTFD);
    supervisor.n_fds = (size_t)_i;
    ck_assert_int_eq(connect_there(), -EPROTO);
    pthread_join(supervisor.thread, NULL);
}

/* ---- calls ---- */

TEST(test_group_is_found_by_name_or_not)
{
    uint64_t group;

    ck_assert_int_eq(troupe_client_group(client, "echo", &group), 0);
    ck_assert_uint_eq(group, GROUP);
    ck_assert_int_eq(troupe_client_group(client, "ecko", &group), -ENOENT);
    ck_assert_int_eq(troupe_client_group(client, "", &group), -ENOENT);
}

TEST(test_do_returns_the_result)
{
    ck_assert_int_eq(do_text("hello"), 0);
    ck_assert_int_eq(result.end, TROUPE_SUCCEEDED);
    ck_assert_str_eq(result.data, "hello");
    ck_assert_uint_eq(result.size, 5);
    ck_assert_str_eq(result.reason, "");
    ck_assert_str_eq(result.id, "0123456789abcdef0000000000000001");
    troupe_result_release(&result);
    troupe_result_release(&result);
    ck_assert_str_eq(result.data, "");
}

TEST(test_death_is_an_end_and_not_an_error)
{
    ck_assert_int_eq(do_text("die"), 0);
    ck_assert_int_eq(result.end, TROUPE_DEAD);
    ck_assert_int_eq(result.code, 5);
    ck_assert_uint_eq(result.attempts, 4);
    ck_assert_str_eq(result.reason, "killed by SIGSEGV");
    ck_assert_str_eq(result.data, "");
    ck_assert_str_eq(troupe_end_name(result.end), "dead");
    ck_assert_int_eq(result.cause, TROUPE_CAUSE_ATTEMPTS);
    ck_assert_str_eq(troupe_cause_name(result.cause), "attempts");
    ck_assert_str_eq(troupe_cause_name(TROUPE_CAUSE_DEPENDENCY + 1), "unknown");
}

TEST(test_empty_payload_gives_empty_result)
{
    ck_assert_int_eq(do_job(NULL, NULL, 0), 0);
    ck_assert_uint_eq(result.size, 0);
    ck_assert_ptr_nonnull(result.data);
}

TEST(test_create_returns_the_id_made_or_chosen)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    char id[TROUPE_ID_SIZE];

    ck_assert_int_eq(troupe_client_create(client, GROUP, NULL, "x", 1, id), 0);
    ck_assert_str_eq(id, "0123456789abcdef0000000000000001");
    options.id = "nightly:7";
    ck_assert_int_eq(troupe_client_create(client, GROUP, &options, "x", 1, id), 0);
    ck_assert_str_eq(id, "nightly:7");
    ck_assert_int_eq(troupe_client_create(client, GROUP, NULL, "x", 1, NULL), 0);
}

TEST(test_refusals_are_returned_and_the_connection_goes_on)
{
    ck_assert_int_eq(do_text("busy"), -EBUSY);
    ck_assert_int_eq(troupe_client_create(client, GROUP, NULL, "busy", 4, NULL), -EBUSY);
    ck_assert_int_eq(troupe_client_create(client, 5, NULL, "x", 1, NULL), -ENOENT);
    ck_assert_int_eq(do_text("fine"), 0);
}

TEST(test_malformed_options_are_refused_here)
{
    struct troupe_job_options good = TROUPE_JOB_DEFAULTS, bad[7];

    for (size_t i = 0; i < ELEMENTS(bad); i++)
        bad[i] = good;
    bad[0].id = "";
    bad[1].id = "two words";
    bad[2].id = "-x";
    bad[3].key_size = 256;
    bad[4].max_retries = -2;
    bad[5].max_retries = UINT32_MAX;
    bad[6].struct_size = 8;
    for (size_t i = 0; i < ELEMENTS(bad); i++)
        ck_assert_int_eq(troupe_client_create(client, GROUP, &bad[i], "x", 1, NULL), -EINVAL);
    ck_assert_int_eq(troupe_client_cancel(client, ""), -EINVAL);
}

TEST(test_options_reach_the_supervisor)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;

    ck_assert_int_eq(do_job(&options, "describe", 8), 0);
    ck_assert_str_eq(result.data, "  ffffffff 0 0 0");
    options = (struct troupe_job_options){.struct_size = sizeof(options),
                                          .id = "a",
                                          .key = "kk",
                                          .key_size = 2,
                                          .max_retries = 0,
                                          .timeout_usec = TROUPE_USEC_INFINITY,
                                          .backoff_min_usec = 16,
                                          .backoff_max_usec = 32};
    ck_assert_int_eq(do_job(&options, "describe", 8), 0);
    ck_assert_str_eq(result.data, "a kk 0 ffffffffffffffff 10 20");
}

TEST(test_cancel_and_watch_by_id)
{
    ck_assert_int_eq(troupe_client_cancel(client, "here"), 0);
    ck_assert_int_eq(troupe_client_cancel(client, "gone"), -ESRCH);
    ck_assert_int_eq(troupe_client_wait(client, "here", 11), 0);
    ck_assert_int_eq(troupe_client_wait(client, "gone", 12), 0);
    ck_assert_int_eq(next(TROUPE_USEC_INFINITY), 0);
    ck_assert_uint_eq(result.cookie, 11);
    ck_assert_int_eq(result.end, TROUPE_CANCELLED);
    ck_assert_str_eq(result.id, "here");
    ck_assert_int_eq(next(TROUPE_USEC_INFINITY), 0);
    ck_assert_uint_eq(result.cookie, 12);
    ck_assert_int_eq(result.error, -ESRCH);
    ck_assert_str_eq(result.reason, "no such job");
}

TEST(test_a_job_is_abandoned_without_an_answer)
{
    ck_assert_int_eq(troupe_client_abandon(client, ""), -EINVAL);
    ck_assert_int_eq(troupe_client_abandon(client, "here"), 0);
    ck_assert_int_eq(troupe_client_abandon(client, "gone"), 0);
    ck_assert_int_eq(troupe_client_withdraw(client, ""), -EINVAL);
    ck_assert_int_eq(troupe_client_withdraw(client, "here"), 0);
    ck_assert_int_eq(troupe_client_withdraw(client, "gone"), 0);
    ck_assert_int_eq(do_text("hello"), 0);
    ck_assert_int_eq(next(0), -EAGAIN);
}

/* ---- large payloads ---- */

TEST(test_blob_filled_in_place_is_sent_and_gone)
{
    void *data, *second;

    ck_assert_int_eq(troupe_client_blob(client, 0, &data), -EINVAL);
    ck_assert_int_eq(troupe_client_blob(client, 100, &data), 0);
    ck_assert_int_eq(troupe_client_blob(client, 100, &second), -EALREADY);
    memset(data, 'q', 100);
    /* Refused before anything was done to it: it stays. */
    ck_assert_int_eq(do_job(NULL, data, 99), -EINVAL);
    ck_assert_int_eq(do_job(NULL, data, 100), 0);
    ck_assert_uint_eq(supervisor.blobs_in, 1);
    ck_assert_uint_eq(result.size, 100);
    ck_assert_int_eq(((const char *)result.data)[99], 'q');
    ck_assert_int_eq(troupe_client_blob(client, 5000, &data), 0);
    troupe_client_blob_drop(client);
    ck_assert_int_eq(troupe_client_blob(client, 5000, &data), 0);
}

TEST(test_many_large_payloads_in_flight_do_not_get_stuck)
{
    enum {
        N = 600
    };
    static char data[INLINE_MAX + 1];
    unsigned sent = 0, received = 0;

    while (received < N) {
        int r = sent < N ? troupe_client_submit(client, GROUP, NULL, data, sizeof(data), sent)
                         : -EAGAIN;

        if (r == 0) {
            sent++;
            continue;
        }
        ck_assert_int_eq(r, -EAGAIN);
        ck_assert_int_eq(next(TROUPE_USEC_INFINITY), 0);
        ck_assert_uint_eq(result.size, sizeof(data));
        ck_assert_uint_eq(result.cookie, received++);
    }
}

/* ---- pipelined ---- */

TEST(test_every_submission_comes_back_once_with_its_cookie)
{
    enum {
        N = 20000
    };
    unsigned sent = 0, received = 0;

    while (received < N) {
        char text[32];

        while (sent < N) {
            int size = snprintf(text, sizeof(text), "job %u", sent);
            int r = troupe_client_submit(client, GROUP, NULL, text, (size_t)size, sent * 3);

            if (r == -EAGAIN)
                break;
            ck_assert_int_eq(r, 0);
            sent++;
        }
        ck_assert_int_eq(next(TROUPE_USEC_INFINITY), 0);
        snprintf(text, sizeof(text), "job %u", received);
        ck_assert_str_eq(result.data, text);
        ck_assert_uint_eq(result.cookie, received * 3);
        received++;
    }
    ck_assert_int_eq(troupe_client_next(client, &(struct troupe_result)TROUPE_RESULT_INIT, 0),
                     -EAGAIN);
}

TEST(test_results_not_yet_released_stay_as_they_are)
{
    enum {
        N = 300
    };
    static struct troupe_result results[N];

    for (unsigned i = 0; i < N; i++) {
        char text[32];

        snprintf(text, sizeof(text), "%u", i);
        results[i] = (struct troupe_result)TROUPE_RESULT_INIT;
        ck_assert_int_eq(troupe_client_do(client, GROUP, NULL, text, strlen(text), &results[i]), 0);
    }
    for (unsigned i = 0; i < N; i++) {
        ck_assert_uint_eq(strtoul(results[i].data, NULL, 10), i);
        if (i % 2)
            troupe_result_release(&results[i]);
    }
}

TEST(test_ends_that_arrive_during_a_call_are_kept_in_order)
{
    uint64_t group;

    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "a", 1, 0), 0);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "busy", 4, 0), 0);
    ck_assert_int_eq(troupe_client_group(client, "echo", &group), 0);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "c", 1, 2), 0);
    ck_assert_int_eq(do_text("mine"), 0);
    ck_assert_str_eq(result.data, "mine");
    ck_assert_int_eq(next(0), 0);
    ck_assert_str_eq(result.data, "a");
    ck_assert_int_eq(next(0), 0);
    ck_assert_int_eq(result.error, -EBUSY);
    ck_assert_str_eq(result.reason, "the queue is full");
    ck_assert_int_eq(next(0), 0);
    ck_assert_uint_eq(result.cookie, 2);
    ck_assert_int_eq(next(0), -EAGAIN);
}

TEST(test_call_finds_its_way_through_a_full_pipeline)
{
    static char data[INLINE_MAX];
    unsigned sent = 0;

    while (troupe_client_submit(client, GROUP, NULL, data, sizeof(data), sent) == 0 && sent < 500)
        sent++;
    ck_assert_int_eq(do_text("through"), 0);
    ck_assert_str_eq(result.data, "through");
    for (unsigned i = 0; i < sent; i++) {
        ck_assert_int_eq(next(TROUPE_USEC_INFINITY), 0);
        ck_assert_uint_eq(result.cookie, i);
    }
}

TEST(test_next_gives_up_after_its_time)
{
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "never", 5, 1), 0);
    ck_assert_int_eq(next(0), -EAGAIN);
    ck_assert_int_eq(next(2000), -EAGAIN);
}

static void ignore(int signal)
{
}

/* Again and again: one alone could come before the call has begun to wait. */
static void begin_signals(void)
{
    const struct itimerval every_millisecond = {{0, 1000}, {0, 1000}};
    const struct sigaction action = {.sa_handler = ignore};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every_millisecond, NULL);
}

static void end_signals(void)
{
    const struct itimerval never = {0};

    setitimer(ITIMER_REAL, &never, NULL);
}

TEST(test_next_is_interrupted_by_a_signal_handler)
{
    begin_signals();
    ck_assert_int_eq(next(TROUPE_USEC_INFINITY), -EINTR);
    end_signals();
}

/* Lets the call wait on twice. */
static int count_signals(void *userdata)
{
    unsigned *n = userdata;

    return ++*n <= 2 ? 0 : -ECANCELED;
}

TEST(test_a_call_that_waits_for_an_answer_is_given_up_on_request)
{
    unsigned n = 0;

    troupe_actor_on_signal(troupe_client_actor(client), count_signals, &n);
    begin_signals();
    ck_assert_int_eq(do_text("later"), -ECANCELED);
    end_signals();
    ck_assert_uint_eq(n, 3);
    /* The answer to both comes now, and that to the first is dropped. */
    ck_assert_int_eq(do_text("answer"), 0);
    ck_assert_int_eq(next(0), -EAGAIN);
}

TEST(test_a_call_that_was_given_up_is_not_heard_of_after_a_crash)
{
    unsigned n = 2;

    troupe_actor_on_signal(troupe_client_actor(client), count_signals, &n);
    begin_signals();
    ck_assert_int_eq(do_text("later"), -ECANCELED);
    end_signals();
    ck_assert_int_eq(do_text("crash"), -ECONNRESET);
    ck_assert_int_eq(next(0), -EAGAIN);
}

TEST(test_an_await_is_given_up_on_request)
{
    struct troupe_future *future;
    unsigned n = 0;

    troupe_actor_on_signal(troupe_client_actor(client), count_signals, &n);
    ck_assert_int_eq(troupe_actor_ask(troupe_client_actor(client), 7, &future, "never"), 0);
    begin_signals();
    ck_assert_int_eq(troupe_future_await(future, TROUPE_AWAIT_STASH), -ECANCELED);
    end_signals();
    troupe_future_free(future);
}

/* ---- the end of the connection ---- */

TEST(test_hang_up_ends_a_waiting_call_and_all_after_it)
{
    uint64_t group;

    ck_assert_int_eq(do_text("hang up"), -ECONNRESET);
    ck_assert_int_eq(troupe_client_group(client, "echo", &group), -EPIPE);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "x", 1, 1), -EPIPE);
    ck_assert_int_eq(troupe_client_cancel(client, "x"), -EPIPE);
    ck_assert_int_eq(next(0), -EPIPE);
}

TEST(test_what_arrived_before_the_hang_up_can_be_taken, .first = WAKE_FUTEX, .n = 2, .bare = true)
{
    start((enum wake_backend)_i);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "last", 4, 1), 0);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "hang up", 7, 2), 0);
    troupe_client_flush(client);
    pthread_join(supervisor.thread, NULL);
    ck_assert_int_eq(next(0), 0);
    ck_assert_str_eq(result.data, "last");
    ck_assert_int_eq(next(0), 0);
    ck_assert_int_eq(result.error, -ECONNRESET);
    ck_assert_uint_eq(result.cookie, 2);
    ck_assert_int_eq(next(0), -EPIPE);
    troupe_client_free(client);
}

enum {
    CUT_N = 24
};

/* The loop's index says at which submission the supervisor hangs up. */
TEST(test_each_request_ends_exactly_once_wherever_the_connection_is_cut, .n = CUT_N + 1)
{
    unsigned n_ends[CUT_N + 1] = {0}, n_lost = 0;

    for (int i = 0; i <= CUT_N; i++) {
        const char *text = i == _i ? "hang up" : i % 3 == 0 ? "never" : "fine";

        ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, text, strlen(text), (uint64_t)i),
                         0);
    }
    while (next(TROUPE_USEC_INFINITY) == 0) {
        ck_assert_uint_le(result.cookie, CUT_N);
        n_ends[result.cookie]++;
        ck_assert(result.error == 0 || result.error == -ECONNRESET);
        ck_assert(result.error < 0 || result.cookie < (uint64_t)_i);
        n_lost += result.error < 0;
    }
    for (int i = 0; i <= CUT_N; i++)
        ck_assert_uint_eq(n_ends[i], 1);
    ck_assert_uint_ge(n_lost, (unsigned)(CUT_N - _i));
    ck_assert_int_eq(next(0), -EPIPE);
}

static void note_end(struct troupe_actor *actor, struct troupe_future *future, void *userdata)
{
    ck_assert_int_eq(troupe_future_error(future), -ECONNRESET);
    ++*(unsigned *)userdata;
}

TEST(test_asks_and_monitors_end_once_when_the_connection_ends)
{
    struct troupe_future *futures[3];
    unsigned n_ends = 0;

    struct troupe_actor *actor = troupe_client_actor(client);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(troupe_actor_ask(actor, 5, &futures[i], "never"), 0);
    ck_assert_int_eq(troupe_actor_monitor(actor, 5, &futures[2]), 0);
    for (int i = 1; i < 3; i++)
        troupe_future_then(futures[i], note_end, &n_ends);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "hang up", 7, 1), 0);
    ck_assert_int_eq(troupe_future_await(futures[0], TROUPE_AWAIT_STASH), -ECONNRESET);
    while (troupe_actor_turn(actor, TROUPE_USEC_INFINITY) == 1)
        ;
    ck_assert_int_eq(troupe_actor_turn(actor, 0), -EPIPE);
    ck_assert_uint_eq(n_ends, 2);
    for (int i = 0; i < 3; i++)
        troupe_future_free(futures[i]);
}

/* ---- a crash of the supervisor, after which another one goes on with the rings ---- */

enum {
    CRASH_N = 20
};

/* The loop's index says at which submission the supervisor crashes, before or after it has consumed
 * it. */
TEST(test_each_request_ends_exactly_once_wherever_the_supervisor_crashes, .n = 2 * CRASH_N)
{
    const int crash_at = _i / 2;
    const bool unread = _i % 2;
    unsigned n_ends[CRASH_N] = {0};

    for (int i = 0; i < CRASH_N; i++) {
        const char *text = "fine";

        if (i == crash_at)
            text = unread ? "crash unread" : "crash";
        else if (i < crash_at && i % 2 == 0)
            text = "never";
        if (i % 5 == 4 && i != crash_at)
            ck_assert_int_eq(troupe_client_wait(client, "slow", (uint64_t)i), 0);
        else
            ck_assert_int_eq(
                troupe_client_submit(client, GROUP, NULL, text, strlen(text), (uint64_t)i), 0);
        if (i % 3 == 0)
            troupe_client_flush(client);
    }
    for (int i = 0; i < CRASH_N; i++) {
        ck_assert_int_eq(next(TROUPE_USEC_INFINITY), 0);
        ck_assert_uint_lt(result.cookie, CRASH_N);
        n_ends[result.cookie]++;
        if (result.error < 0) {
            ck_assert_int_eq(result.error, -ECONNRESET);
            ck_assert_uint_le(result.cookie, (uint64_t)crash_at);
            ck_assert_uint_ne(result.cookie % 5, result.cookie == (uint64_t)crash_at ? 5 : 4);
        } else
            ck_assert(result.cookie % 5 == 4 || result.cookie > (uint64_t)crash_at ||
                      result.cookie % 2 == 1 || (unread && result.cookie == (uint64_t)crash_at));
    }
    for (int i = 0; i < CRASH_N; i++)
        ck_assert_uint_eq(n_ends[i], 1);
    ck_assert_int_eq(next(0), -EAGAIN);
    ck_assert_int_eq(do_text("fine"), 0);
}

TEST(test_calls_go_on_after_a_crash)
{
    uint64_t group;

    ck_assert_int_eq(troupe_client_group(client, "crash", &group), -ENOENT); /* by the second one */
    ck_assert_uint_eq(supervisor.crashes, 1);
    ck_assert_int_eq(do_text("fine"), 0);
    ck_assert_int_eq(do_text("crash"), -ECONNRESET);
    ck_assert_int_eq(troupe_client_create(client, GROUP, NULL, "crash", 5, NULL), -ECONNRESET);
    ck_assert_int_eq(do_text("fine"), 0);
    ck_assert_uint_eq(supervisor.crashes, 3);
}

TEST(test_an_answer_that_comes_again_after_a_crash_is_ignored)
{
    ck_assert_int_eq(troupe_client_cancel(client, "crash"), 0);
    ck_assert_int_eq(do_text("fine"), 0);
    ck_assert_uint_eq(supervisor.crashes, 1);
}

static void note_restart(struct troupe_actor *actor, void *userdata)
{
    ++*(unsigned *)userdata;
}

TEST(test_the_actor_hears_of_a_crash_and_its_asks_end)
{
    struct troupe_future *lost, *sent_after;
    unsigned n_restarts = 0;

    struct troupe_actor *actor = troupe_client_actor(client);
    troupe_actor_on_restart(actor, note_restart, &n_restarts);
    ck_assert_int_eq(troupe_actor_ask(actor, 5, &lost, "never"), 0);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "crash", 5, 1), 0);
    ck_assert_int_eq(troupe_future_await(lost, TROUPE_AWAIT_STASH), -ECONNRESET);
    ck_assert_uint_eq(n_restarts, 0); /* not from within a wait that stashes */
    ck_assert_int_eq(troupe_actor_ask(actor, 5, &sent_after, "never"), 0);
    ck_assert_int_eq(troupe_actor_turn(actor, TROUPE_USEC_INFINITY), 1);
    ck_assert_uint_eq(n_restarts, 1);
    ck_assert_int_eq(troupe_actor_turn(actor, 0), 0);
    ck_assert(!troupe_future_done(sent_after));
    troupe_future_free(lost);
}

/* ---- an upgrade, which keeps what was not answered ---- */

TEST(test_each_request_ends_exactly_once_across_an_upgrade)
{
    unsigned n_ends[CRASH_N] = {0};
    uint64_t group;

    for (uint64_t i = 0; i < CRASH_N; i++) {
        const char *text = i == CRASH_N - 1 ? "upgrade" : "later";

        if (i % 5 == 0)
            ck_assert_int_eq(troupe_client_wait(client, "slow", i), 0);
        else
            ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, text, strlen(text), i), 0);
    }
    ck_assert_int_eq(troupe_client_group(client, "echo", &group), 0); /* by the second one */
    ck_assert_uint_eq(supervisor.crashes, 1);
    ck_assert_int_eq(next(0), -EAGAIN);
    ck_assert_int_eq(do_text("answer"), 0);
    for (int i = 0; i < CRASH_N; i++) {
        ck_assert_int_eq(next(TROUPE_USEC_INFINITY), 0);
        ck_assert_int_eq(result.error, 0);
        n_ends[result.cookie]++;
    }
    for (int i = 0; i < CRASH_N; i++)
        ck_assert_uint_eq(n_ends[i], 1);
    ck_assert_int_eq(next(0), -EAGAIN);
}

TEST(test_an_upgrade_does_not_spare_what_an_earlier_crash_has_ended)
{
    uint64_t group;

    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "never", 5, 7), 0);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "crash", 5, 7), 0);
    ck_assert_int_eq(troupe_client_group(client, "echo", &group), 0); /* by the second one */
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "upgrade", 7, 8), 0);
    ck_assert_int_eq(troupe_client_group(client, "echo", &group), 0); /* by the third one */
    ck_assert_uint_eq(supervisor.crashes, 2);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(next(TROUPE_USEC_INFINITY), 0);
        ck_assert_int_eq(result.error, -ECONNRESET);
        ck_assert_uint_eq(result.cookie, 7);
    }
    ck_assert_int_eq(next(0), -EAGAIN);
}

TEST(test_the_actor_hears_of_an_upgrade_only_if_it_has_lost_something)
{
    struct troupe_future *asked, *monitor;
    unsigned n_restarts = 0;

    struct troupe_actor *actor = troupe_client_actor(client);
    troupe_actor_on_restart(actor, note_restart, &n_restarts);
    ck_assert_int_eq(troupe_actor_ask(actor, 5, &asked, "never"), 0);
    ck_assert_int_eq(troupe_actor_monitor(actor, 5, &monitor), 0);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "upgrade", 7, 1), 0);
    ck_assert_int_eq(do_text("answer"), 0); /* by the second one */
    ck_assert_uint_eq(supervisor.crashes, 1);
    while (troupe_actor_turn(actor, 0) == 1)
        ;
    ck_assert_uint_eq(n_restarts, 0);
    ck_assert_int_eq(do_text("upgrade from an old version"), -ECONNRESET);
    while (troupe_actor_turn(actor, 0) == 1)
        ;
    ck_assert_uint_eq(n_restarts, 1);
    ck_assert(!troupe_future_done(asked) && !troupe_future_done(monitor));
}

TEST(test_an_event_loop_is_told_of_requests_that_a_crash_has_ended)
{
    struct pollfd poller = {.events = POLLIN};
    int r;

    poller.fd = troupe_client_fd(client);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "crash", 5, 7), 0);
    while ((r = troupe_client_process(client)) == 0)
        ck_assert_int_eq(poll(&poller, 1, -1), 1);
    ck_assert_int_eq(r, 1);
    ck_assert_int_eq(next(0), 0);
    ck_assert_int_eq(result.error, -ECONNRESET);
    ck_assert_uint_eq(result.cookie, 7);
    ck_assert_int_eq(next(0), -EAGAIN);
    ck_assert_int_eq(troupe_client_process(client), 0);
}

TEST(test_records_that_cannot_be_understood_end_the_connection, .n = 2)
{
    static const char *const texts[] = {"nonsense", "unasked"};

    ck_assert_int_eq(do_text(texts[_i]), -ECONNRESET);
    ck_assert_int_eq(next(0), -EPIPE);
}

const struct suite suite = {.setup_with = start, .teardown = end};

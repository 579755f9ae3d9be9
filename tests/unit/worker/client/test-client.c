/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake-daemon.h"
#include <signal.h>
#include <sys/time.h>

static const enum wake_backend backends[] = {WAKE_FUTEX, WAKE_EVENTFD};

static int do_text(const char *text, struct troupe_result *result)
{
    return troupe_client_do(client, GROUP, NULL, text, strlen(text), result);
}

/* ---- connecting ---- */

START_TEST(test_no_socket_there_is_said)
{
    ck_assert_int_eq(troupe_client_connect(&client, "/nonexistent/troupe.sock"), -ENOENT);
}
END_TEST

START_TEST(test_path_that_no_socket_can_have_is_refused)
{
    char path[300];

    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    ck_assert_int_eq(troupe_client_connect(&client, path), -ENAMETOOLONG);
}
END_TEST

START_TEST(test_socket_is_found_by_the_environment)
{
    listen_there(WAKE_FUTEX);
    setenv("TROUPE_SOCKET", supervisor.path, 1);
    ck_assert_int_eq(pthread_create(&supervisor.thread, NULL, run, NULL), 0);
    ck_assert_int_eq(troupe_client_connect(&client, NULL), 0);
    unlink(supervisor.path);
    stop();
}
END_TEST

static const struct {
    const char *reply;
    int error;
} replies[] = {
    {"{\"error\":\"io.troupe.Jobs.NotPermitted\",\"parameters\":{\"needed\":\"root\"}}", -EPERM},
    {"{\"error\": \"io.troupe.Jobs.TooManyClients\", \"parameters\": {\"maximum\": 1}}", -EUSERS},
    {"{\"error\":\"io.troupe.Jobs.BadVersion\"}", -EPROTO},
    {"{\"error\":\"io.troupe.Jobs.Stopping\"}", -ESHUTDOWN},
    {"{\"error\":\"org.varlink.service.MethodNotFound\"}", -EPROTO},
    {"{\"parameters\":{\"descriptors\":3}}", -EPROTO},
    {"", -EPROTO},
};

START_TEST(test_refusal_of_the_connection_becomes_an_errno)
{
    listen_there(WAKE_FUTEX);
    supervisor.reply = replies[_i].reply;
    ck_assert_int_eq(connect_there(), replies[_i].error);
    pthread_join(supervisor.thread, NULL);
}
END_TEST

START_TEST(test_odd_number_of_descriptors_is_refused)
{
    listen_there(WAKE_EVENTFD);
    supervisor.n_fds = (size_t)_i;
    ck_assert_int_eq(connect_there(), -EPROTO);
    pthread_join(supervisor.thread, NULL);
}
END_TEST

/* ---- calls ---- */

START_TEST(test_group_is_found_by_name_or_not)
{
    uint64_t group;

    start(backends[_i]);
    ck_assert_int_eq(troupe_client_group(client, "echo", &group), 0);
    ck_assert_uint_eq(group, GROUP);
    ck_assert_int_eq(troupe_client_group(client, "ecko", &group), -ENOENT);
    ck_assert_int_eq(troupe_client_group(client, "", &group), -ENOENT);
    stop();
}
END_TEST

START_TEST(test_do_returns_the_result)
{
    struct troupe_result result = TROUPE_RESULT_INIT;

    start(backends[_i]);
    ck_assert_int_eq(do_text("hello", &result), 0);
    ck_assert_int_eq(result.end, TROUPE_SUCCEEDED);
    ck_assert_str_eq(result.data, "hello");
    ck_assert_uint_eq(result.size, 5);
    ck_assert_str_eq(result.reason, "");
    ck_assert_str_eq(result.id, "0123456789abcdef0000000000000001");
    troupe_result_release(&result);
    troupe_result_release(&result);
    ck_assert_str_eq(result.data, "");
    stop();
}
END_TEST

START_TEST(test_death_is_an_end_and_not_an_error)
{
    struct troupe_result result = TROUPE_RESULT_INIT;

    start(WAKE_FUTEX);
    ck_assert_int_eq(do_text("die", &result), 0);
    ck_assert_int_eq(result.end, TROUPE_DEAD);
    ck_assert_int_eq(result.code, 5);
    ck_assert_uint_eq(result.attempts, 4);
    ck_assert_str_eq(result.reason, "killed by SIGSEGV");
    ck_assert_str_eq(result.data, "");
    ck_assert_str_eq(troupe_end_name(result.end), "dead");
    troupe_result_release(&result);
    stop();
}
END_TEST

START_TEST(test_empty_payload_gives_empty_result)
{
    struct troupe_result result = TROUPE_RESULT_INIT;

    start(WAKE_FUTEX);
    ck_assert_int_eq(troupe_client_do(client, GROUP, NULL, NULL, 0, &result), 0);
    ck_assert_uint_eq(result.size, 0);
    ck_assert_ptr_nonnull(result.data);
    troupe_result_release(&result);
    stop();
}
END_TEST

START_TEST(test_create_returns_the_id_made_or_chosen)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    char id[TROUPE_ID_SIZE];

    start(WAKE_FUTEX);
    ck_assert_int_eq(troupe_client_create(client, GROUP, NULL, "x", 1, id), 0);
    ck_assert_str_eq(id, "0123456789abcdef0000000000000001");
    options.id = "nightly:7";
    ck_assert_int_eq(troupe_client_create(client, GROUP, &options, "x", 1, id), 0);
    ck_assert_str_eq(id, "nightly:7");
    ck_assert_int_eq(troupe_client_create(client, GROUP, NULL, "x", 1, NULL), 0);
    stop();
}
END_TEST

START_TEST(test_refusals_are_returned_and_the_connection_goes_on)
{
    struct troupe_result result = TROUPE_RESULT_INIT;

    start(WAKE_FUTEX);
    ck_assert_int_eq(do_text("busy", &result), -EBUSY);
    troupe_result_release(&result);
    ck_assert_int_eq(troupe_client_create(client, GROUP, NULL, "busy", 4, NULL), -EBUSY);
    ck_assert_int_eq(troupe_client_create(client, 5, NULL, "x", 1, NULL), -ENOENT);
    ck_assert_int_eq(do_text("fine", &result), 0);
    troupe_result_release(&result);
    stop();
}
END_TEST

START_TEST(test_malformed_options_are_refused_here)
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
    start(WAKE_FUTEX);
    for (size_t i = 0; i < ELEMENTS(bad); i++)
        ck_assert_int_eq(troupe_client_create(client, GROUP, &bad[i], "x", 1, NULL), -EINVAL);
    ck_assert_int_eq(troupe_client_cancel(client, ""), -EINVAL);
    stop();
}
END_TEST

START_TEST(test_options_reach_the_supervisor)
{
    struct troupe_job_options options = TROUPE_JOB_DEFAULTS;
    struct troupe_result result = TROUPE_RESULT_INIT;

    start(WAKE_FUTEX);
    ck_assert_int_eq(troupe_client_do(client, GROUP, &options, "describe", 8, &result), 0);
    ck_assert_str_eq(result.data, "  ffffffff 0 0 0");
    troupe_result_release(&result);
    options = (struct troupe_job_options){.struct_size = sizeof(options),
                                          .id = "a",
                                          .key = "kk",
                                          .key_size = 2,
                                          .max_retries = 0,
                                          .timeout_usec = TROUPE_USEC_INFINITY,
                                          .backoff_min_usec = 16,
                                          .backoff_max_usec = 32};
    ck_assert_int_eq(troupe_client_do(client, GROUP, &options, "describe", 8, &result), 0);
    ck_assert_str_eq(result.data, "a kk 0 ffffffffffffffff 10 20");
    troupe_result_release(&result);
    stop();
}
END_TEST

START_TEST(test_cancel_and_watch_by_id)
{
    struct troupe_result result = TROUPE_RESULT_INIT;

    start(WAKE_FUTEX);
    ck_assert_int_eq(troupe_client_cancel(client, "here"), 0);
    ck_assert_int_eq(troupe_client_cancel(client, "gone"), -ESRCH);
    ck_assert_int_eq(troupe_client_wait(client, "here", 11), 0);
    ck_assert_int_eq(troupe_client_wait(client, "gone", 12), 0);
    ck_assert_int_eq(troupe_client_next(client, &result, TROUPE_USEC_INFINITY), 0);
    ck_assert_uint_eq(result.cookie, 11);
    ck_assert_int_eq(result.end, TROUPE_CANCELLED);
    ck_assert_str_eq(result.id, "here");
    troupe_result_release(&result);
    ck_assert_int_eq(troupe_client_next(client, &result, TROUPE_USEC_INFINITY), 0);
    ck_assert_uint_eq(result.cookie, 12);
    ck_assert_int_eq(result.error, -ESRCH);
    ck_assert_str_eq(result.reason, "no such job");
    troupe_result_release(&result);
    stop();
}
END_TEST

/* ---- large payloads ---- */

START_TEST(test_large_payloads_travel_as_blobs_both_ways)
{
    size_t size = 1000000;
    struct troupe_result result = TROUPE_RESULT_INIT;
    char *data = malloc(size);

    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 11);
    start(backends[_i]);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(troupe_client_do(client, GROUP, NULL, data, size, &result), 0);
        ck_assert_uint_eq(result.size, size);
        ck_assert_mem_eq(result.data, data, size);
        troupe_result_release(&result);
    }
    ck_assert_uint_eq(supervisor.blobs_in, 3);
    free(data);
    stop();
}
END_TEST

START_TEST(test_blob_filled_in_place_is_sent_and_gone)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    void *data, *second;

    start(WAKE_FUTEX);
    ck_assert_int_eq(troupe_client_blob(client, 0, &data), -EINVAL);
    ck_assert_int_eq(troupe_client_blob(client, 100, &data), 0);
    ck_assert_int_eq(troupe_client_blob(client, 100, &second), -EALREADY);
    memset(data, 'q', 100);
    /* Refused before anything was done to it: it stays. */
    ck_assert_int_eq(troupe_client_do(client, GROUP, NULL, data, 99, &result), -EINVAL);
    ck_assert_int_eq(troupe_client_do(client, GROUP, NULL, data, 100, &result), 0);
    ck_assert_uint_eq(supervisor.blobs_in, 1);
    ck_assert_uint_eq(result.size, 100);
    ck_assert_int_eq(((const char *)result.data)[99], 'q');
    troupe_result_release(&result);
    ck_assert_int_eq(troupe_client_blob(client, 5000, &data), 0);
    troupe_client_blob_drop(client);
    ck_assert_int_eq(troupe_client_blob(client, 5000, &data), 0);
    stop();
}
END_TEST

START_TEST(test_many_large_payloads_in_flight_do_not_get_stuck)
{
    enum {
        N = 600
    };
    static char data[INLINE_MAX + 1];
    unsigned sent = 0, received = 0;
    struct troupe_result result = TROUPE_RESULT_INIT;

    start(backends[_i]);
    while (received < N) {
        int r = sent < N ? troupe_client_submit(client, GROUP, NULL, data, sizeof(data), sent)
                         : -EAGAIN;

        if (r == 0) {
            sent++;
            continue;
        }
        ck_assert_int_eq(r, -EAGAIN);
        ck_assert_int_eq(troupe_client_next(client, &result, TROUPE_USEC_INFINITY), 0);
        ck_assert_uint_eq(result.size, sizeof(data));
        ck_assert_uint_eq(result.cookie, received++);
        troupe_result_release(&result);
    }
    stop();
}
END_TEST

/* ---- pipelined ---- */

START_TEST(test_every_submission_comes_back_once_with_its_cookie)
{
    enum {
        N = 20000
    };
    unsigned sent = 0, received = 0;

    start(backends[_i]);
    while (received < N) {
        struct troupe_result result = TROUPE_RESULT_INIT;
        char text[32];

        while (sent < N) {
            int size = snprintf(text, sizeof(text), "job %u", sent);
            int r = troupe_client_submit(client, GROUP, NULL, text, (size_t)size, sent * 3);

            if (r == -EAGAIN)
                break;
            ck_assert_int_eq(r, 0);
            sent++;
        }
        ck_assert_int_eq(troupe_client_next(client, &result, TROUPE_USEC_INFINITY), 0);
        snprintf(text, sizeof(text), "job %u", received);
        ck_assert_str_eq(result.data, text);
        ck_assert_uint_eq(result.cookie, received * 3);
        troupe_result_release(&result);
        received++;
    }
    ck_assert_int_eq(troupe_client_next(client, &(struct troupe_result)TROUPE_RESULT_INIT, 0),
                     -EAGAIN);
    stop();
}
END_TEST

START_TEST(test_results_not_yet_released_stay_as_they_are)
{
    enum {
        N = 300
    };
    static struct troupe_result results[N];

    start(WAKE_FUTEX);
    for (unsigned i = 0; i < N; i++) {
        char text[32];

        snprintf(text, sizeof(text), "%u", i);
        results[i] = (struct troupe_result)TROUPE_RESULT_INIT;
        ck_assert_int_eq(do_text(text, &results[i]), 0);
    }
    for (unsigned i = 0; i < N; i++) {
        ck_assert_uint_eq(strtoul(results[i].data, NULL, 10), i);
        if (i % 2)
            troupe_result_release(&results[i]);
    }
    stop(); /* frees the others */
}
END_TEST

START_TEST(test_memory_of_a_released_result_is_used_again)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    const void *first;

    start(WAKE_FUTEX);
    ck_assert_int_eq(do_text("one", &result), 0);
    first = result.data;
    troupe_result_release(&result);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(do_text("another", &result), 0);
        ck_assert_ptr_eq(result.data, first);
        troupe_result_release(&result);
    }
    stop();
}
END_TEST

START_TEST(test_ends_that_arrive_during_a_call_are_kept_in_order)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    uint64_t group;

    start(backends[_i]);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "a", 1, 0), 0);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "busy", 4, 0), 0);
    ck_assert_int_eq(troupe_client_group(client, "echo", &group), 0);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "c", 1, 2), 0);
    ck_assert_int_eq(do_text("mine", &result), 0);
    ck_assert_str_eq(result.data, "mine");
    troupe_result_release(&result);
    ck_assert_int_eq(troupe_client_next(client, &result, 0), 0);
    ck_assert_str_eq(result.data, "a");
    troupe_result_release(&result);
    ck_assert_int_eq(troupe_client_next(client, &result, 0), 0);
    ck_assert_int_eq(result.error, -EBUSY);
    ck_assert_str_eq(result.reason, "the queue is full");
    troupe_result_release(&result);
    ck_assert_int_eq(troupe_client_next(client, &result, 0), 0);
    ck_assert_uint_eq(result.cookie, 2);
    troupe_result_release(&result);
    ck_assert_int_eq(troupe_client_next(client, &result, 0), -EAGAIN);
    stop();
}
END_TEST

START_TEST(test_call_finds_its_way_through_a_full_pipeline)
{
    static char data[INLINE_MAX];
    struct troupe_result result = TROUPE_RESULT_INIT;
    unsigned sent = 0;

    start(backends[_i]);
    while (troupe_client_submit(client, GROUP, NULL, data, sizeof(data), sent) == 0 && sent < 500)
        sent++;
    ck_assert_int_eq(do_text("through", &result), 0);
    ck_assert_str_eq(result.data, "through");
    troupe_result_release(&result);
    for (unsigned i = 0; i < sent; i++) {
        ck_assert_int_eq(troupe_client_next(client, &result, TROUPE_USEC_INFINITY), 0);
        ck_assert_uint_eq(result.cookie, i);
        troupe_result_release(&result);
    }
    stop();
}
END_TEST

START_TEST(test_next_gives_up_after_its_time)
{
    struct troupe_result result = TROUPE_RESULT_INIT;

    start(backends[_i]);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "never", 5, 1), 0);
    ck_assert_int_eq(troupe_client_next(client, &result, 0), -EAGAIN);
    ck_assert_int_eq(troupe_client_next(client, &result, 2000), -EAGAIN);
    stop();
}
END_TEST

static void ignore(int signal)
{
    (void)signal;
}

START_TEST(test_next_is_interrupted_by_a_signal_handler)
{
    /* Again and again: one alone could come before the call has begun to wait. */
    const struct itimerval every_millisecond = {{0, 1000}, {0, 1000}}, never = {0};
    const struct sigaction action = {.sa_handler = ignore};
    struct troupe_result result = TROUPE_RESULT_INIT;

    start(backends[_i]);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every_millisecond, NULL);
    ck_assert_int_eq(troupe_client_next(client, &result, TROUPE_USEC_INFINITY), -EINTR);
    setitimer(ITIMER_REAL, &never, NULL);
    stop();
}
END_TEST

/* ---- the end of the connection ---- */

START_TEST(test_hang_up_ends_a_waiting_call_and_all_after_it)
{
    struct troupe_result result = TROUPE_RESULT_INIT;
    uint64_t group;

    start(backends[_i]);
    ck_assert_int_eq(do_text("hang up", &result), -EPIPE);
    ck_assert_int_eq(troupe_client_group(client, "echo", &group), -EPIPE);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "x", 1, 1), -EPIPE);
    ck_assert_int_eq(troupe_client_cancel(client, "x"), -EPIPE);
    ck_assert_int_eq(troupe_client_next(client, &result, 0), -EPIPE);
    stop();
}
END_TEST

START_TEST(test_what_arrived_before_the_hang_up_can_be_taken)
{
    struct troupe_result result = TROUPE_RESULT_INIT;

    start(backends[_i]);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "last", 4, 1), 0);
    ck_assert_int_eq(troupe_client_submit(client, GROUP, NULL, "hang up", 7, 2), 0);
    troupe_client_flush(client);
    pthread_join(supervisor.thread, NULL);
    ck_assert_int_eq(troupe_client_next(client, &result, 0), 0);
    ck_assert_str_eq(result.data, "last");
    troupe_result_release(&result);
    ck_assert_int_eq(troupe_client_next(client, &result, 0), -EPIPE);
    troupe_client_free(client);
}
END_TEST

START_TEST(test_records_that_cannot_be_understood_end_the_connection)
{
    static const char *const texts[] = {"nonsense", "unasked"};
    struct troupe_result result = TROUPE_RESULT_INIT;

    start(WAKE_FUTEX);
    ck_assert_int_eq(do_text(texts[_i], &result), -EPIPE);
    ck_assert_int_eq(troupe_client_next(client, &result, 0), -EPIPE);
    stop();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("client");
    TCase *connecting = tcase_create("connecting"), *calls = tcase_create("calls"),
          *large = tcase_create("large payloads"), *pipelined = tcase_create("pipelined"),
          *ends = tcase_create("the end of the connection");
    int n = (int)ELEMENTS(backends);

    tcase_add_test(connecting, test_no_socket_there_is_said);
    tcase_add_test(connecting, test_path_that_no_socket_can_have_is_refused);
    tcase_add_test(connecting, test_socket_is_found_by_the_environment);
    tcase_add_loop_test(connecting, test_refusal_of_the_connection_becomes_an_errno, 0,
                        (int)ELEMENTS(replies));
    tcase_add_loop_test(connecting, test_odd_number_of_descriptors_is_refused, 1, 5);
    tcase_add_loop_test(calls, test_group_is_found_by_name_or_not, 0, n);
    tcase_add_loop_test(calls, test_do_returns_the_result, 0, n);
    tcase_add_test(calls, test_death_is_an_end_and_not_an_error);
    tcase_add_test(calls, test_empty_payload_gives_empty_result);
    tcase_add_test(calls, test_create_returns_the_id_made_or_chosen);
    tcase_add_test(calls, test_refusals_are_returned_and_the_connection_goes_on);
    tcase_add_test(calls, test_malformed_options_are_refused_here);
    tcase_add_test(calls, test_options_reach_the_supervisor);
    tcase_add_test(calls, test_cancel_and_watch_by_id);
    tcase_add_loop_test(large, test_large_payloads_travel_as_blobs_both_ways, 0, n);
    tcase_add_test(large, test_blob_filled_in_place_is_sent_and_gone);
    tcase_add_loop_test(large, test_many_large_payloads_in_flight_do_not_get_stuck, 0, n);
    tcase_add_loop_test(pipelined, test_every_submission_comes_back_once_with_its_cookie, 0, n);
    tcase_add_test(pipelined, test_results_not_yet_released_stay_as_they_are);
    tcase_add_test(pipelined, test_memory_of_a_released_result_is_used_again);
    tcase_add_loop_test(pipelined, test_ends_that_arrive_during_a_call_are_kept_in_order, 0, n);
    tcase_add_loop_test(pipelined, test_call_finds_its_way_through_a_full_pipeline, 0, n);
    tcase_add_loop_test(pipelined, test_next_gives_up_after_its_time, 0, n);
    tcase_add_loop_test(pipelined, test_next_is_interrupted_by_a_signal_handler, 0, n);
    tcase_add_loop_test(ends, test_hang_up_ends_a_waiting_call_and_all_after_it, 0, n);
    tcase_add_loop_test(ends, test_what_arrived_before_the_hang_up_can_be_taken, 0, n);
    tcase_add_loop_test(ends, test_records_that_cannot_be_understood_end_the_connection, 0, 2);
    suite_add_tcase(s, connecting);
    suite_add_tcase(s, calls);
    suite_add_tcase(s, large);
    suite_add_tcase(s, pipelined);
    suite_add_tcase(s, ends);
    return s;
}

int main(void)
{
    SRunner *runner = srunner_create(suite());
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

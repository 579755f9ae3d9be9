/* SPDX-License-Identifier: MIT */
#include "supervisor/metrics/metrics.h"

#include "tests/unit/suite.h"

static json_t *reply;
static char *text;

static void tear_down(void)
{
    json_decref(reply);
    reply = NULL;
    free(text);
    text = NULL;
}

/* Writes JSON in which apostrophes stand for quotes. */
static json_t *parse(const char *json)
{
    char *copy = strdup(json);
    json_error_t error;

    ck_assert_ptr_nonnull(copy);
    for (char *c = copy; *c != '\0'; c++)
        if (*c == '\'')
            *c = '"';
    json_t *value = json_loads(copy, 0, &error);
    ck_assert_msg(value, "%s: %s", error.text, copy);
    free(copy);
    return value;
}

static const char *write_as_text(const char *json)
{
    size_t size;

    tear_down();
    reply = parse(json);
    text = metrics_to_text(reply, &size);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(size, strlen(text));
    return text;
}

TEST(a_counters_family_has_the_name_of_its_samples)
{
    ck_assert_str_eq(write_as_text("{'groups': [{'name': 'a', 'accepted': 3, 'queued': 2},"
                                   " {'name': 'b', 'accepted': 4, 'queued': 0}]}"),
                     "# HELP troupe_jobs_accepted_total Jobs that were accepted.\n"
                     "# TYPE troupe_jobs_accepted_total counter\n"
                     "troupe_jobs_accepted_total{group=\"a\"} 3\n"
                     "troupe_jobs_accepted_total{group=\"b\"} 4\n"
                     "# HELP troupe_queue_jobs Jobs that wait for a worker, of all cells.\n"
                     "# TYPE troupe_queue_jobs gauge\n"
                     "troupe_queue_jobs{group=\"a\"} 2\n"
                     "troupe_queue_jobs{group=\"b\"} 0\n"
                     "# EOF\n");
}

TEST(members_of_an_object_are_samples_with_a_label)
{
    write_as_text(
        "{'groups': [{'name': 'a', 'workers': {'idle': 3, 'busy': 1}, 'state': 'paused'}]}");
    ck_assert_ptr_nonnull(strstr(text, "\ntroupe_workers{group=\"a\",state=\"idle\"} 3\n"
                                       "troupe_workers{group=\"a\",state=\"busy\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "\ntroupe_group_state{group=\"a\",state=\"paused\"} 1\n"));
}

TEST(buckets_of_a_histogram_are_cumulative)
{
    write_as_text("{'bounds_usec': [16, 32, 1000000], 'groups': [{'name': 'a',"
                  " 'wait': {'buckets': [2, 0, 3, 1], 'sum_usec': 2000001},"
                  " 'run': {'buckets': [1], 'sum_usec': 7}}]}");
    ck_assert_ptr_nonnull(strstr(text,
                                 "# TYPE troupe_job_wait_seconds histogram\n"
                                 "troupe_job_wait_seconds_bucket{group=\"a\",le=\"0.000016\"} 2\n"
                                 "troupe_job_wait_seconds_bucket{group=\"a\",le=\"0.000032\"} 2\n"
                                 "troupe_job_wait_seconds_bucket{group=\"a\",le=\"1.0\"} 5\n"
                                 "troupe_job_wait_seconds_bucket{group=\"a\",le=\"+Inf\"} 6\n"
                                 "troupe_job_wait_seconds_count{group=\"a\"} 6\n"
                                 "troupe_job_wait_seconds_sum{group=\"a\"} 2.000001\n"));
    ck_assert_ptr_nonnull(strstr(text, "le=\"1.0\"} 1\n"
                                       "troupe_job_run_seconds_bucket{group=\"a\",le=\"+Inf\"} 1\n"
                                       "troupe_job_run_seconds_count{group=\"a\"} 1\n"
                                       "troupe_job_run_seconds_sum{group=\"a\"} 0.000007\n"));
}

TEST(a_histogram_that_has_counted_nothing_is_its_last_bucket_alone)
{
    write_as_text("{'bounds_usec': [16, 32], 'groups': [{'name': 'a', 'wait': {'buckets': [],"
                  " 'sum_usec': 0}}, {'name': 'b', 'wait': {'buckets': [0, 1], 'sum_usec': 20}}]}");
    ck_assert_ptr_nonnull(strstr(text,
                                 "\n# TYPE troupe_job_wait_seconds histogram\n"
                                 "troupe_job_wait_seconds_bucket{group=\"a\",le=\"+Inf\"} 0\n"
                                 "troupe_job_wait_seconds_count{group=\"a\"} 0\n"
                                 "troupe_job_wait_seconds_sum{group=\"a\"} 0\n"
                                 "troupe_job_wait_seconds_bucket{group=\"b\",le=\"0.000016\"} 0\n"
                                 "troupe_job_wait_seconds_bucket{group=\"b\",le=\"0.000032\"} 1\n"
                                 "troupe_job_wait_seconds_bucket{group=\"b\",le=\"+Inf\"} 1\n"));
}

TEST(values_of_labels_are_escaped)
{
    write_as_text("{'groups': [{'name': 'x\\\"\\\\\\n=', 'queued': 1}]}");
    ck_assert_ptr_nonnull(strstr(text, "troupe_queue_jobs{group=\"x\\\"\\\\\\n=\"} 1\n"));
}

TEST(what_is_missing_or_of_another_type_is_left_out)
{
    static const char *const STRANGE[] = {
        "{}",
        "{'groups': 7, 'store': [], 'supervisor': 'x', 'dead_letters': null}",
        "{'groups': [1, null, {'name': 3, 'queued': 'x', 'wait': [], 'run': {'buckets': 1}}]}",
        "{'bounds_usec': {}, 'groups': [{'name': 'a', 'wait': {'buckets': [1]}}]}",
        "{'supervisor': {'workers': {}, 'clients': 1.5, 'version': 2}}",
    };

    for (size_t i = 0; i < ELEMENTS(STRANGE); i++)
        ck_assert_str_eq(write_as_text(STRANGE[i]), "# EOF\n");
}

TEST(times_are_written_exactly)
{
    write_as_text("{'groups': [{'name': 'a', 'oldest_usec': 0},"
                  " {'name': 'b', 'oldest_usec': 1000000},"
                  " {'name': 'c', 'oldest_usec': 90071992547409930},"
                  " {'name': 'd', 'oldest_usec': -1}]}");
    ck_assert_ptr_nonnull(strstr(text, "{group=\"a\"} 0\n"));
    ck_assert_ptr_nonnull(strstr(text, "{group=\"b\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(text, "{group=\"c\"} 90071992547.40993\n"));
    ck_assert_ptr_nonnull(strstr(text, "{group=\"d\"} -0.000001\n"));
}

TEST(replies_in_parts_are_joined)
{
    json_t *whole = json_object(), *first = parse("{'groups': [{'name': 'a', 'queued': 1}]}");
    json_t *last = parse("{'groups': [{'name': 'b', 'queued': 2}], 'supervisor': {'clients': 3}}");

    ck_assert_int_eq(metrics_join(whole, first), 0);
    ck_assert_int_eq(metrics_join(whole, last), 0);
    text = metrics_to_text(whole, NULL);
    ck_assert_ptr_nonnull(strstr(text, "{group=\"a\"} 1\ntroupe_queue_jobs{group=\"b\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(text, "\ntroupe_clients 3\n"));
    json_decref(whole);
    json_decref(first);
    json_decref(last);
}

const struct suite suite = {.teardown = tear_down};

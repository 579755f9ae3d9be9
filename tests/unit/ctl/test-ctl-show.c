/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/format.h"
#include "tests/unit/suite.h"

#define NOW (1000 * USEC_PER_SEC)

static char *output;
static size_t output_size;
static struct terminal terminal;

static void set_up(void)
{
    terminal = (struct terminal){.utf8 = true};
    terminal.file = open_memstream(&output, &output_size);
    ck_assert_ptr_nonnull(terminal.file);
}

static void tear_down(void)
{
    free(output);
}

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *value = json_loads(text, 0, &error);

    ck_assert_msg(value != NULL, "%s", error.text);
    return value;
}

static void show_and_forget(json_t *group, bool all)
{
    show_group(&terminal, group, NOW, all);
    ck_assert_int_eq(fclose(terminal.file), 0);
    json_decref(group);
}

#define ck_assert_shows(text)     ck_assert_msg(strstr(output, text) != NULL, "%s", output)
#define ck_assert_shows_not(text) ck_assert_msg(strstr(output, text) == NULL, "%s", output)

/* A group of `n` idle workers; `worker` (taken over) in place of number `index`. */
static json_t *group_of(size_t n, size_t index, json_t *worker)
{
    json_t *group = parse("{\"name\":\"g\",\"description\":\"Work\",\"type\":\"actor\","
                          "\"state\":\"running\",\"workers\":[]}");
    json_t *workers = json_object_get(group, "workers");

    json_object_set_new(group, "size", json_integer((json_int_t)n));
    for (size_t i = 0; i < n; i++) {
        char name[32];

        snprintf(name, sizeof(name), "g/%zu", i);
        if (i == index)
            json_array_append(workers, worker);
        else
            json_array_append_new(workers, json_pack("{s:s, s:s, s:i, s:I}", "name", name, "state",
                                                     "idle", "pid", 4711, "since_at",
                                                     (json_int_t)(NOW - 5 * USEC_PER_SEC)));
    }
    json_decref(worker);
    return group;
}

TEST(healthy_workers_of_a_large_group_are_not_listed)
{
    show_and_forget(group_of(1000, 1000, NULL), false);
    ck_assert_str_eq(output, "● g - Work: running\n"
                             "   Workers: 1,000 of 1,000 up: 1,000 idle\n"
                             "     Queue: empty\n"
                             "      Jobs: none yet\n");
}

TEST(all_workers_are_listed_when_asked_for)
{
    show_and_forget(group_of(20, 20, NULL), true);
    ck_assert_shows("● g/0   idle for 5.0s  pid 4711\n");
    ck_assert_shows("● g/19  idle for 5.0s  pid 4711\n");
    ck_assert_shows_not("more:");
}

TEST(workers_of_a_small_group_are_listed)
{
    show_and_forget(group_of(2, 2, NULL), false);
    ck_assert_shows("g/0");
    ck_assert_shows("g/1");
}

TEST(the_one_that_is_down_stands_out_with_why_and_until_when)
{
    json_t *worker = parse("{\"name\":\"g/7\",\"state\":\"backoff\",\"since_at\":998000000,"
                           "\"restart_at\":1001200000,\"restarts\":3,\"last_death\":{"
                           "\"worker\":\"g/7\",\"cause\":\"signal\",\"at\":998000000,"
                           "\"detail\":\"killed by SIGSEGV (core dumped)\","
                           "\"stderr\":\"first\\nassertion failed\\n\"}}");
    json_t *group = group_of(20, 7, worker);

    json_object_set_new(group, "state", json_string("degraded"));
    json_object_set_new(group, "deaths", json_integer(3));
    show_and_forget(group, false);
    ck_assert_shows("! g - Work: degraded – 1 to be restarted later\n"
                    "   Workers: 19 of 20 up: 19 idle, 1 in backoff\n");
    ck_assert_shows(
        "      Last: killed by SIGSEGV (core dumped): assertion failed (g/7, 2.0s ago)\n"
        "            more: troupectl deaths g\n"
        "    Deaths: 3\n");
    ck_assert_shows(
        "○ g/7  restarts in 1.2s  3 restarts  killed by SIGSEGV (core dumped) 2.0s ago\n"
        "     │ assertion failed\n"
        "   and 19 more\n");
}

TEST(a_worker_that_was_asked_to_stop_has_not_failed)
{
    json_t *worker = parse("{\"name\":\"g/0\",\"state\":\"stopped\",\"last_death\":{\"worker\":"
                           "\"g/0\",\"cause\":\"stop\",\"at\":998000000,\"detail\":\"stopped\"}}");

    show_and_forget(group_of(2, 0, worker), false);
    ck_assert_shows_not("Deaths:");
    ck_assert_shows_not("ago");
}

TEST(queue_and_jobs_are_counted)
{
    json_t *group = group_of(2, 2, NULL);
    static const char *const names[] = {"succeeded", "rejected", "cancelled", "dead",
                                        "retries",   "running",  "waiting",   "refused"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        json_object_set_new(group, names[i], json_integer((json_int_t)(i + 1) * 1000));
    json_object_set_new(group, "queued", json_integer(1204));
    json_object_set_new(group, "queue_bytes", json_integer(40055603));
    json_object_set_new(group, "oldest_queued_at", json_integer(988000000));
    show_and_forget(group, false);
    ck_assert_shows(
        "Queue: 1,204 jobs (38.2 MiB), the oldest waits for 12s; 8,000 refused so far\n");
    ck_assert_shows(
        "Jobs: 6,000 running, 7,000 delayed or between attempts; 4,000 dead, 1,000 succeeded, "
        "2,000 rejected, 3,000 cancelled; 5,000 retried\n");
}

TEST(a_service_has_no_queue)
{
    json_t *group = group_of(1, 1, NULL);

    json_object_set_new(group, "type", json_string("service"));
    show_and_forget(group, false);
    ck_assert_shows("● g - Work: running (service)\n   Workers: 1 of 1 up: 1 up\n");
    ck_assert_shows_not("Queue");
    ck_assert_shows_not("Jobs");
}

TEST(what_workers_wrote_cannot_steer_the_terminal)
{
    json_t *death = parse("{\"worker\":\"g/0\",\"cause\":\"exit\",\"detail\":\"\\u001b[2J\","
                          "\"stderr\":\"\\u001b]0;title\\u0007\\n\",\"state\":"
                          "{\"encoding\":\"utf8\",\"data\":\"\\u0002\"}}");

    show_death(&terminal, death, NOW);
    ck_assert_int_eq(fclose(terminal.file), 0);
    for (size_t i = 0; i < output_size; i++)
        ck_assert(output[i] == '\n' || (unsigned char)output[i] >= 0x20);
    ck_assert_shows("\\x1b[2J");
    json_decref(death);
}

TEST(replies_without_any_member_do_no_harm)
{
    json_t *nothing = json_object(), *numbers = parse("{\"workers\":7,\"name\":[],\"state\":{}}");

    show_group(&terminal, nothing, NOW, true);
    show_group(&terminal, numbers, NOW, true);
    show_worker(&terminal, nothing, nothing, NOW);
    show_death(&terminal, nothing, NOW);
    show_event(&terminal, nothing);
    show_job(&terminal, nothing, NOW);
    show_job_state(&terminal, nothing, NOW);
    list_print(&terminal, "", show_job_columns, nothing, NOW);
    ck_assert_int_eq(fclose(terminal.file), 0);
    ck_assert_uint_gt(output_size, 0);
    json_decref(nothing);
    json_decref(numbers);
}

TEST(a_job_tells_of_its_attempts)
{
    json_t *job = parse(
        "{\"id\":\"j\",\"group\":\"g\",\"state\":\"dead\",\"attempt\":2,"
        "\"failed_attempts\":2,\"max_attempts\":2,\"created_at\":990000000,\"ended_at\":995000000,"
        "\"reason\":\"killed by SIGSEGV\",\"attempts\":[{\"number\":1,"
        "\"worker\":\"g/3\",\"at\":991000000,\"cause\":\"signal\","
        "\"detail\":\"killed by SIGSEGV\"}]}");

    show_job(&terminal, job, NOW);
    ck_assert_int_eq(fclose(terminal.file), 0);
    ck_assert_shows("✗ j: dead, killed by SIGSEGV\n");
    ck_assert_shows("1  g/3  9.0s ago  signal: killed by SIGSEGV\n");
    ck_assert_shows("(5.0s ago)\n");
    ck_assert_shows("Took: 5.0s\n");
    ck_assert_shows("Failed: 2 of 2 allowed attempts\n");
    json_decref(job);
}

TEST(the_last_lines_of_a_text_are_quoted)
{
    char buffer[64];

    show_quoted(&terminal, "> ", "one\ntwo\n\nfour", 3);
    show_quoted(&terminal, "> ", "", 3);
    show_quoted(&terminal, "> ", "five\n", 3);
    ck_assert_int_eq(fclose(terminal.file), 0);
    ck_assert_str_eq(output, "> │ two\n> │ \n> │ four\n> │ five\n");
    ck_assert_str_eq(format_last_line(buffer, sizeof(buffer), "a\nb\n"), "b");
    ck_assert_str_eq(format_last_line(buffer, sizeof(buffer), "a"), "a");
    ck_assert_str_eq(format_last_line(buffer, sizeof(buffer), ""), "");
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};

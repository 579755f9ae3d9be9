/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake-supervisor.h"
#include "tests/unit/suite.h"
#include "worker/troupe.h"
#include <sched.h>

/* ---- the worker under test: does what the payload says ---- */

static int echo(struct troupe_job *job, const char *text, size_t size)
{
    return troupe_job_succeed(job, text, size);
}

static int describe(struct troupe_job *job)
{
    char text[256];
    size_t key_size;
    const char *key = troupe_job_key(job, &key_size);
    int size = snprintf(text, sizeof(text), "%s %.*s %u/%u %s %lu", troupe_job_id(job),
                        (int)key_size, key, troupe_job_attempt(job), troupe_job_max_attempts(job),
                        troupe_worker_name(troupe_job_worker(job)),
                        (unsigned long)troupe_worker_generation(troupe_job_worker(job)));

    return troupe_job_succeed(job, text, (size_t)size);
}

static int big_result(struct troupe_job *job, size_t size)
{
    char *data = malloc(size);

    memset(data, 'x', size);
    int r = troupe_job_succeed(job, data, size);
    free(data);
    return r;
}

static int blob_result(struct troupe_job *job, size_t size)
{
    void *data, *second;
    int r = troupe_job_blob(job, size, &data);

    if (r < 0)
        return r;
    if (troupe_job_blob(job, size, &second) != -EALREADY)
        return -ENOTRECOVERABLE;
    memset(data, 'y', size);
    return troupe_job_succeed_blob(job);
}

static int end_twice(struct troupe_job *job)
{
    if (troupe_job_succeed(job, "first", 5) < 0)
        return -ENOTRECOVERABLE;
    if (troupe_job_retry(job, 1, "second") != -EALREADY)
        abort();
    return -EIO; /* Too late to matter. */
}

static int crash_twice(struct troupe_job *job)
{
    static char long_command[400];
    struct troupe_crash crash = {.struct_size = sizeof(crash), .pid = 4711, .signal = 0};

    memset(long_command, 'c', sizeof(long_command) - 1);
    crash.command = long_command;
    if (troupe_job_crashed(job, &crash) != -EINVAL)
        abort();
    crash.signal = 11;
    crash.struct_size = 1;
    if (troupe_job_crashed(job, &crash) != -EINVAL)
        abort();
    crash.struct_size = sizeof(crash);
    if (troupe_job_crashed(job, &crash) != 0 || troupe_job_crashed(job, &crash) != -EALREADY)
        abort();
    return troupe_job_retry(job, 139, "crashed");
}

static int await_cancel(struct troupe_job *job)
{
    while (!troupe_job_is_cancelled(job))
        sched_yield();
    return troupe_job_cancelled(job);
}

static int check_placement(struct troupe_job *job, const char *text, size_t size)
{
    if ((uintptr_t)text % 8 != 0)
        return troupe_job_retry(job, 1, "not aligned");
    if (text[size] != '\0')
        return troupe_job_retry(job, 2, "no NUL");
    return troupe_job_succeed(job, "ok", 2);
}

static int long_text(struct troupe_job *job)
{
    char text[3000];

    /* Two-byte characters at odd offsets: the cut at 1024 would fall into the middle of one. */
    text[0] = 'a';
    for (size_t i = 1; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    text[sizeof(text) - 1] = text[sizeof(text) - 2] = '\0';
    return troupe_job_retry(job, 9, text);
}

static int handle(struct troupe_job *job, void *userdata)
{
    size_t size;
    const char *text = troupe_job_payload(job, &size);

    if (strncmp(text, "place", 5) == 0)
        return check_placement(job, text, size);
    if (strcmp(text, "describe") == 0)
        return describe(job);
    if (strcmp(text, "nothing") == 0)
        return 0;
    if (strcmp(text, "errno") == 0)
        return -ENOSPC;
    if (strcmp(text, "twice") == 0)
        return end_twice(job);
    if (strcmp(text, "crash") == 0)
        return crash_twice(job);
    if (strcmp(text, "reject") == 0)
        return troupe_job_reject(job, 42, "no", 2);
    if (strcmp(text, "long text") == 0)
        return long_text(job);
    if (strncmp(text, "big ", 4) == 0)
        return big_result(job, strtoul(text + 4, NULL, 10));
    if (strncmp(text, "blob ", 5) == 0)
        return blob_result(job, strtoul(text + 5, NULL, 10));
    if (strcmp(text, "refused end") == 0) {
        troupe_job_succeed(job, text, SIZE_MAX);
        return 0;
    }
    if (strcmp(text, "cancel") == 0)
        return await_cancel(job);
    if (strncmp(text, "state ", 6) == 0) {
        if (troupe_worker_publish_state(troupe_job_worker(job), text + 6, size - 6) < 0)
            return -ENOTRECOVERABLE;
        return await_cancel(job);
    }
    return echo(job, text, size);
}

static int run_worker(void)
{
    struct troupe_worker *worker;
    int r = troupe_worker_new(&worker);

    if (r < 0)
        return 90;
    troupe_worker_on_job(worker, handle, NULL);
    r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r < 0 ? 91 : 0;
}

static struct fake fake;

static void start(enum wake_backend backend)
{
    fake_start(&fake, backend, run_worker);
    fake_expect(&fake, PROTOCOL_READY);
}

static void stop(void)
{
    fake_stop(&fake);
}

/* ---- attaching ---- */

TEST(test_process_not_started_by_the_supervisor_is_told_so, .bare = true)
{
    struct troupe_worker *worker;

    unsetenv("TROUPE_INBOX");
    ck_assert_int_eq(troupe_worker_new(&worker), -ENOTCONN);
}

static int try_environment(void)
{
    struct troupe_worker *worker;
    int r = troupe_worker_new(&worker);

    return r == -EPROTO && !getenv("TROUPE_INBOX") && !getenv("TROUPE_WORKER") ? 0 : 1;
}

static const char *const bad_environments[][2] = {
    {"TROUPE_INBOX", ""},      {"TROUPE_INBOX", "x"},      {"TROUPE_INBOX", "-3"},
    {"TROUPE_INBOX", "3x"},    {"TROUPE_INBOX", "0"},      {"TROUPE_INBOX", "99999999999999999999"},
    {"TROUPE_INBOX", "4"},     {"TROUPE_OUTBOX", "3"},     {"TROUPE_OUTBOX", "19"},
    {"TROUPE_CONTROL", "3"},   {"TROUPE_CONTROL", NULL},   {"TROUPE_WORKER", NULL},
    {"TROUPE_GENERATION", ""}, {"TROUPE_GENERATION", NULL}};
static const char *const *bad_environment;

static int run_bad_environment(void)
{
    if (bad_environment[1])
        setenv(bad_environment[0], bad_environment[1], 1);
    else
        unsetenv(bad_environment[0]);
    return try_environment();
}

static int run_stream_control(void)
{
    int sockets[2];

    /* A socket, but not of the kind that keeps descriptors and their numbers together. */
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0 || dup2(sockets[0], 5) < 0)
        return 2;
    return try_environment();
}

TEST(test_control_socket_of_another_type_is_refused, .bare = true)
{
    fake_start(&fake, WAKE_FUTEX, run_stream_control);
    ck_assert_int_eq(WEXITSTATUS(fake_wait(&fake)), 0);
}

TEST(test_environment_that_makes_no_sense_is_refused_and_consumed, .n = ELEMENTS(bad_environments),
     .bare = true)
{
    bad_environment = bad_environments[_i];
    fake_start(&fake, WAKE_FUTEX, run_bad_environment);
    ck_assert_msg(fake_wait(&fake) == 0, "%s=%s", bad_environment[0], bad_environment[1]);
}

static int run_inspect(void)
{
    struct troupe_worker *worker;

    (void)unsetenv("TROUPE_LOOP"); /* of whoever runs the tests */
    if (troupe_worker_new(&worker) < 0)
        return 1;
    for (int fd = 3; fd < 20; fd++) {
        int flags = fcntl(fd, F_GETFD);

        if (flags >= 0 && !(flags & FD_CLOEXEC))
            return 2;
    }
    for (char **variable = environ; *variable; variable++)
        if (strncmp(*variable, "TROUPE_", 7) == 0)
            return 3;
    troupe_worker_free(worker);
    for (int fd = 3; fd < 20; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            return 4;
    return 0;
}

TEST(test_children_of_a_worker_inherit_nothing, .first = WAKE_FUTEX, .n = 2, .bare = true)
{
    fake_start(&fake, (enum wake_backend)_i, run_inspect);
    ck_assert_int_eq(WEXITSTATUS(fake_wait(&fake)), 0);
}

/* ---- jobs ---- */

TEST(test_handler_learns_everything_about_its_job)
{
    fake_send(&fake, "describe", 8, 3);
    fake_started(&fake);
    fake_result(&fake);
    ck_assert_str_eq(fake.data, "job-1 key 3/4 test/0 7");
    ck_assert_uint_eq(fake.attempt, 3);
}

TEST(test_inline_payload_is_aligned_and_ends_with_nul)
{
    char text[40] = "place";

    memset(text + 5, '.', sizeof(text) - 5);
    for (size_t size = 5; size < sizeof(text); size++) {
        fake_do(&fake, text, size);
        ck_assert_str_eq(fake.data, "ok");
    }
}

TEST(test_empty_payload_is_not_null)
{
    fake_do(&fake, NULL, 0);
    ck_assert_int_eq(fake.outcome, PROTOCOL_SUCCESS);
    ck_assert_uint_eq(fake.size, 0);
}

TEST(test_large_payload_comes_as_a_mapped_blob)
{
    size_t size = 300000;
    char *data = malloc(size);

    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 7);
    for (int i = 0; i < 3; i++) {
        fake_do(&fake, data, size);
        ck_assert_int_eq(fake.form, PAYLOAD_BLOB);
        ck_assert_uint_eq(fake.size, size);
        ck_assert_mem_eq(fake.data, data, size);
    }
    free(data);
}

TEST(test_result_is_a_blob_only_above_inline_max)
{
    fake_do_text(&fake, "big 4096");
    ck_assert_int_eq(fake.form, PAYLOAD_INLINE);
    ck_assert_uint_eq(fake.size, 4096);
    fake_do_text(&fake, "big 4097");
    ck_assert_int_eq(fake.form, PAYLOAD_BLOB);
    ck_assert_uint_eq(fake.size, 4097);
}

TEST(test_result_can_be_written_in_place)
{
    fake_do_text(&fake, "blob 100000");
    ck_assert_int_eq(fake.form, PAYLOAD_BLOB);
    ck_assert_uint_eq(fake.size, 100000);
    ck_assert_int_eq(fake.data[99999], 'y');
    fake_do_text(&fake, "blob 1");
    ck_assert_str_eq(fake.data, "y");
}

TEST(test_handler_that_returns_zero_has_succeeded_with_nothing)
{
    fake_do_text(&fake, "nothing");
    ck_assert_int_eq(fake.outcome, PROTOCOL_SUCCESS);
    ck_assert_uint_eq(fake.size, 0);
}

TEST(test_handler_that_returns_an_errno_has_failed_with_its_text)
{
    fake_do_text(&fake, "errno");
    fake_ended(&fake, PROTOCOL_RETRY, ENOSPC, "No space left on device");
}

TEST(test_result_that_could_not_be_sent_is_not_taken_for_an_empty_one)
{
    fake_do_text(&fake, "refused end");
    fake_ended(&fake, PROTOCOL_RETRY, EMSGSIZE, NULL);
}

TEST(test_reject_carries_code_and_data)
{
    fake_do_text(&fake, "reject");
    fake_ended(&fake, PROTOCOL_REJECT, 42, "no");
}

TEST(test_crash_of_a_process_is_reported_once_before_the_end)
{
    fake_do_text(&fake, "crash");
    ck_assert_int_eq(fake.crash.signal, 11);
    ck_assert_int_eq(fake.crash.pid, 4711);
    ck_assert_uint_eq(strlen(fake.command), PROTOCOL_COMMAND_MAX);
    fake_ended(&fake, PROTOCOL_RETRY, 139, NULL);
}

TEST(test_job_ends_once)
{
    fake_do_text(&fake, "twice");
    fake_ended(&fake, PROTOCOL_SUCCESS, 0, "first");
    fake_do_text(&fake, "next");
    ck_assert_str_eq(fake.data, "next");
}

TEST(test_long_reason_is_cut_between_characters)
{
    fake_do_text(&fake, "long text");
    fake_ended(&fake, PROTOCOL_RETRY, 9, NULL);
    ck_assert_uint_eq(fake.size, 1023);
}

TEST(test_handler_sees_the_cancel_flag_of_its_own_job)
{
    fake_do_text(&fake, "one");
    fake_cancel(&fake); /* of the job that has ended: must not touch the next one */
    fake_do_text(&fake, "two");
    ck_assert_str_eq(fake.data, "two");
    fake_send(&fake, "cancel", 6, 1);
    fake_started(&fake);
    fake_cancel(&fake);
    fake_result(&fake);
    ck_assert_int_eq(fake.outcome, PROTOCOL_CANCELLED);
}

TEST(test_queued_jobs_are_handled_in_order_before_the_stop, .first = WAKE_FUTEX, .n = 2,
     .bare = true)
{
    start((enum wake_backend)_i);
    for (int i = 0; i < 5; i++)
        fake_send(&fake, &"abcde"[i], 1, 1);
    fake_put(&fake, PROTOCOL_STOP, "", 0);
    fake.handle = 0;
    for (int i = 0; i < 5; i++) {
        fake.handle++;
        fake_started(&fake);
        fake_result(&fake);
        ck_assert_int_eq(fake.data[0], "abcde"[i]);
    }
    ck_assert_int_eq(fake_wait(&fake), 0);
}

TEST(test_record_of_unknown_kind_ends_the_worker, .bare = true)
{
    start(WAKE_FUTEX);
    fake_put(&fake, (enum protocol_kind)99, "", 0);
    ck_assert_int_eq(WEXITSTATUS(fake_wait(&fake)), 91);
}

/* ---- state, heartbeat, scope, turns ---- */

TEST(test_state_is_readable_while_the_handler_runs_and_counts_as_life)
{
    char state[TROUPE_STATE_MAX];
    size_t size;
    int r;

    uint64_t before = atomic_load(&fake.channel.their_words->mark);
    fake_send(&fake, "state at 17", 11, 1);
    fake_started(&fake);
    do
        r = memory_state_read(&fake.channel.theirs, state, &size);
    while (r == -EAGAIN || (r >= 0 && size == 0)); /* it may be writing */
    ck_assert_int_ge(r, 0);
    ck_assert_uint_eq(size, 5);
    ck_assert_mem_eq(state, "at 17", 5);
    fake_cancel(&fake);
    fake_result(&fake);
    ck_assert_uint_ne(atomic_load(&fake.channel.their_words->mark), before);
}

static int scope_fd;

static int scope_up(struct troupe_worker *worker, void *userdata)
{
    return write(scope_fd, "u", 1) == 1 ? *(int *)userdata : -EIO;
}

static void scope_down(struct troupe_worker *worker, void *userdata)
{
    if (write(scope_fd, "d", 1) != 1)
        abort();
}

static int scope_result;

static int run_scope(void)
{
    struct troupe_worker *worker;

    if (troupe_worker_new(&worker) < 0)
        return 90;
    troupe_worker_on_job(worker, handle, NULL);
    troupe_worker_on_scope(worker, scope_up, scope_down, &scope_result);
    int r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    return r == scope_result ? 0 : 91;
}

static void scope_start(int pipe_fds[2])
{
    ck_assert_int_eq(pipe(pipe_fds), 0);
    scope_fd = fcntl(pipe_fds[1], F_DUPFD, 30);
    fake_start(&fake, WAKE_FUTEX, run_scope);
    close(scope_fd);
    close(pipe_fds[1]);
}

TEST(test_failed_set_up_ends_the_worker_before_it_is_ready, .bare = true)
{
    char marks[4] = "";
    int fds[2];

    scope_result = -ENODEV;
    scope_start(fds);
    ck_assert_int_eq(read(fds[0], marks, 1), 1);
    ck_assert_int_eq(read(fds[0], marks, 1), 0); /* no tear-down */
    ck_assert(!ring_pending(&fake.channel.in));
    ck_assert_int_eq(WEXITSTATUS(fake_wait(&fake)), 0);
}

static int run_turns(void)
{
    struct troupe_worker *worker;
    int r, handled = 0;

    if (troupe_worker_new(&worker) < 0 || troupe_worker_turn(worker, 0) != -EINVAL)
        return 90;
    troupe_worker_on_job(worker, handle, NULL);
    /* Whether a job is there yet is not for this side to know. */
    for (uint64_t timeout = 0; timeout <= 2000; timeout += 1000) {
        r = troupe_worker_turn(worker, timeout);
        if (r < 0)
            return 94;
        handled += r;
    }
    while ((r = troupe_worker_turn(worker, TROUPE_USEC_INFINITY)) >= 0)
        handled += r;
    if (troupe_worker_turn(worker, 0) != -ESHUTDOWN)
        return 92;
    troupe_worker_free(worker);
    return r == -ESHUTDOWN && handled == 3 ? 0 : 93;
}

TEST(test_turns_handle_one_job_each_and_tell_of_the_stop, .first = WAKE_FUTEX, .n = 2, .bare = true)
{
    fake_start(&fake, (enum wake_backend)_i, run_turns);
    fake_expect(&fake, PROTOCOL_READY);
    for (int i = 0; i < 3; i++)
        fake_do_text(&fake, "x");
    fake_stop(&fake);
}

static int run_orphan(void)
{
    struct troupe_worker *worker;
    int r;

    if (troupe_worker_new(&worker) < 0)
        return 90;
    troupe_worker_on_job(worker, handle, NULL);
    do
        r = troupe_worker_turn(worker, 1000);
    while (r >= 0);
    troupe_worker_free(worker);
    return r == -ESHUTDOWN ? 0 : 91;
}

TEST(test_turn_notices_that_the_supervisor_is_gone, .bare = true)
{
    fake_start(&fake, WAKE_FUTEX, run_orphan);
    fake_expect(&fake, PROTOCOL_READY);
    close(fake.control);
    fake.control = -1;
    ck_assert_int_eq(fake_wait(&fake), 0);
}

const struct suite suite = {.setup_with = start, .teardown = stop};

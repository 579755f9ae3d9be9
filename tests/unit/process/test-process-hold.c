/* SPDX-License-Identifier: MIT */

/* A process that one supervisor starts and the next one adopts, with a real keeper between them. */

#include "shared/base/log.h"
#include "supervisor/event/event.h"
#include "supervisor/process/process.h"
#include "tests/unit/fake-keeper.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#define TIMEOUT (60 * USEC_PER_SEC)

static struct event_bus events;
static struct process_context context;
static struct process process;
static struct kept_state *state;
static char lines[8][64];
static size_t n_lines;
static bool started, ended, exited;
static int pipe_fds[2];

static void on_line(struct event_subscriber *subscriber, const struct event *event)
{
    ck_assert_uint_lt(n_lines, ELEMENTS(lines));
    (void)snprintf(lines[n_lines++], sizeof(lines[0]), "%s", event->message);
}

static struct event_subscriber subscriber = {.fn = on_line};

static void on_started(struct process *p)
{
    started = true;
    loop_stop(context.loop);
}

static void on_ended(struct process *p)
{
    ended = true;
}

static void on_exited(struct process *p)
{
    ck_assert(!exited);
    exited = true;
    process_release(p);
    loop_stop(context.loop);
}

static void on_failed(struct process *p, const struct spawn_report *report)
{
    ck_abort_msg("%s: %s", spawn_step_to_string(report->step), strerror(-report->error));
}

static const struct process_handler HANDLER = {
    .started = on_started, .ended = on_ended, .exited = on_exited, .failed = on_failed};

/* Called in each supervisor that the keeper starts. */
static void setup(void)
{
    const int channel = go_under_keeper().channel;
    bool found;

    log_nothing();
    ck_assert_int_eq(event_bus_init(&events), 0);
    event_subscribe(&events.line_subscribers, &subscriber);
    context.events = &events;
    context.loop = new_loop();
    ck_assert_int_eq(process_context_init(&context, context.loop, channel), 0);
    ck_assert_int_eq(held_collect(&context.held, &context.spawner, TIMEOUT), 0);
    ck_assert_int_eq(process_context_adopt(&context), 0);
    state = kept_state_open(&context.kept, "test/0", &found);
    ck_assert(found == (context.held.end.n_restarts > 0));
    process_init(&process, &context,
                 &(struct process_subject){.group = "test", .worker = "test/0", .key = ""},
                 kept_state_output(&context.kept, state));
}

static void teardown(void)
{
    process_deinit(&process);
    process_context_deinit(&context);
    loop_free(context.loop);
    event_bus_deinit(&events);
}

/* Descriptor 3 of the script is at its end when this supervisor has ended. */
static void start(char *script)
{
    struct config_group *config;
    const char *step = "";

    ck_assert_int_eq(config_defaults(&config, "test"), 0);
    config->exec_start = calloc(4, sizeof(char *));
    config->exec_start[0] = strdup("/bin/sh");
    config->exec_start[1] = strdup("-c");
    config->exec_start[2] = strdup(script);
    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    const struct process_options options = {
        .config = config, .fds = &(struct spawn_fd){pipe_fds[0], 3}, .n_fds = 1};
    ck_assert_int_eq(process_start(&process, &options, &HANDLER, &step), 0);
    config_group_free(config);
    while (!started)
        ck_assert_int_eq(loop_run(context.loop), 0);
    ck_assert_int_eq(process_hold(&process, HOLDING_SERVICE, "test/0", &pipe_fds[0], 1), 0);
}

static _Noreturn void crash(void)
{
    spawner_tell(&context.spawner, MESSAGE_READY);
    (void)kill(getpid(), SIGKILL);
    abort();
}

static struct held *take_with(size_t n_fds)
{
    struct held *held = held_take(&context.held, HOLDING_SERVICE, "test/0");

    ck_assert_ptr_nonnull(held);
    ck_assert_uint_eq(held->n_fds, n_fds); /* the owner's first */
    close_fd(TAKE_FD(held->fds[0]));
    return held;
}

static struct held *take(void)
{
    return take_with(2);
}

/* Any descriptor that can be watched stands for the listener. */
static void hold_with_listener(void)
{
    call_set_add(&process.logged, SYS_mkdirat);
    process_listen(&process, eventfd(0, EFD_CLOEXEC));
    ck_assert_int_ge(process.calls.fd, 0);
    ck_assert_int_eq(process_hold(&process, HOLDING_SERVICE, "test/0", &pipe_fds[0], 1), 0);
}

static bool is_eventfd(int fd)
{
    char path[64], target[64];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    target[n > 0 ? n : 0] = '\0';
    return strstr(target, "eventfd");
}

static void run_until_exited(void)
{
    while (!exited)
        ck_assert_int_eq(loop_run(context.loop), 0);
}

TEST(a_process_goes_on_with_its_output_in_the_middle_of_a_line)
{
    if (context.held.end.n_restarts == 0) {
        start(
            "trap 'echo line; exit 3' TERM; printf 'first\nhalf a '; while :; do sleep .01; done");
        while (process.output.end < strlen("first\nhalf a "))
            capture_catch_up(&process.output);
        crash();
    }
    ck_assert_int_eq(process_adopt(&process, take(), &HANDLER), 0);
    if (context.held.end.n_restarts == 1)
        crash(); /* it is still held */
    ck_assert_uint_eq(n_lines, 0);
    ck_assert(!process.ended);
    ck_assert(process_confirm(&process));
    process_signal(&process, SIGTERM);
    run_until_exited();
    ck_assert(!started && ended);
    ck_assert_int_eq(process.exit.code, 3);
    ck_assert_uint_eq(n_lines, 1);
    ck_assert_str_eq(lines[0], "half a line");
    char tail[64];
    (void)process_last_output(&process, 0, tail, sizeof(tail));
    ck_assert_str_eq(tail, "first\nhalf a line\n");
}

TEST(a_process_that_ends_between_two_supervisors_is_reported_once)
{
    if (context.held.end.n_restarts == 0) {
        start("read x <&3; echo last words; exit 4");
        crash();
    }
    if (context.held.end.n_restarts == 1) {
        ck_assert_int_eq(process_adopt(&process, take(), &HANDLER), 0);
        run_until_exited();
        ck_assert_int_eq(process.exit.code, 4);
        ck_assert(!process.exit.signalled);
        ck_assert_uint_eq(n_lines, 1);
        ck_assert_str_eq(lines[0], "last words");
        crash();
    }
    ck_assert_ptr_null(held_take(&context.held, HOLDING_SERVICE, "test/0"));
}

TEST(an_adopted_process_is_killed_with_its_children)
{
    if (context.held.end.n_restarts == 0) {
        start("sleep 10000 & echo $!; wait");
        while (n_lines == 0)
            capture_catch_up(&process.output);
        memcpy(state->data, lines[0], sizeof(lines[0]));
        crash();
    }
    const pid_t child = atoi((const char *)state->data);
    ck_assert_int_gt(child, 1);
    ck_assert_int_eq(process_adopt(&process, take(), &HANDLER), 0);
    ck_assert(process_has(&process, child));
    process_kill_all(&process);
    run_until_exited();
    ck_assert_int_eq(process.exit.code, SIGKILL);
    while (kill(child, 0) == 0)
        sched_yield();
}

TEST(a_process_that_could_get_no_signal_is_not_adopted_and_is_killed)
{
    if (context.held.end.n_restarts == 0) {
        start("exec sleep 10000");
        memcpy(state->data, &process.pid, sizeof(process.pid));
        crash();
    }
    struct held *held = take();
    pid_t pid;

    held->pidfd = close_fd(held->pidfd); /* as if the keeper had too many descriptors */
    memcpy(&pid, state->data, sizeof(pid));
    ck_assert_int_eq(process_adopt(&process, held, &HANDLER), -EMFILE);
    while (kill(pid, 0) == 0)
        sched_yield();
}

TEST(a_listener_is_held_beside_the_output)
{
    if (context.held.end.n_restarts == 0) {
        start("exec sleep 10000");
        hold_with_listener();
        crash();
    }
    ck_assert_int_eq(process_adopt(&process, take_with(3), &HANDLER), 0);
    ck_assert(is_eventfd(process.calls.fd));
    ck_assert(process.output.fd >= 0 && !is_eventfd(process.output.fd));
    process_kill_all(&process);
    run_until_exited();
}

TEST(a_listener_is_held_when_the_output_is_closed)
{
    if (context.held.end.n_restarts == 0) {
        start("exec >&- 2>&-; exec sleep 10000");
        while (process.output.fd >= 0)
            capture_catch_up(&process.output);
        hold_with_listener();
        crash();
    }
    ck_assert_int_eq(process_adopt(&process, take_with(2), &HANDLER), 0);
    ck_assert(is_eventfd(process.calls.fd));
    ck_assert_int_lt(process.output.fd, 0);
    process_kill_all(&process);
    run_until_exited();
}

/* Its filter still asks about them, although they may not be configured any more. */
TEST(the_recorded_calls_of_a_process_stay_known)
{
    if (context.held.end.n_restarts == 0) {
        start("exec sleep 10000");
        hold_with_listener();
        crash();
    }
    call_set_add(&process.logged, SYS_read); /* configured now */
    ck_assert_int_eq(process_adopt(&process, take_with(3), &HANDLER), 0);
    if (context.held.end.n_restarts == 1)
        crash(); /* it is still held */
    ck_assert(call_set_has(&process.logged, SYS_mkdirat));
    ck_assert(call_set_has(&process.logged, SYS_read));
    ck_assert(!call_set_has(&process.logged, SYS_write));
    process_kill_all(&process);
    run_until_exited();
}

const struct suite suite = {.setup = setup, .teardown = teardown};

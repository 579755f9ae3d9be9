/* SPDX-License-Identifier: MIT */
#include "shared/base/quantity.h"
#include "tests/unit/fake-supervisor.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include "worker/exec/command.h"
#include "worker/exec/leftovers.h"
#include "worker/exec/options.h"
#include "worker/exec/outcome.h"
#include "worker/exec/template.h"
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

/* ---- template ---- */

#define ARGV(...) ((char *[]){__VA_ARGS__, NULL})

static struct template_values values = {.payload = "the payload",
                                        .payload_size = 11,
                                        .id = "id-7",
                                        .key = "k",
                                        .key_size = 1,
                                        .attempt = 2};

static void expand(const char *from, const char *to)
{
    char **argv;

    ck_assert_int_eq(template_expand(ARGV("prog", (char *)(uintptr_t)from), &values, &argv), 0);
    ck_assert_str_eq(argv[1], to);
    ck_assert_ptr_null(argv[2]);
    template_free(argv);
}

TEST(test_placeholders_are_replaced_wherever_they_stand)
{
    expand("{}", "the payload");
    expand("--file={}", "--file=the payload");
    expand("{id}/{key}/{attempt}/{}", "id-7/k/2/the payload");
    expand("{}{}", "the payloadthe payload");
    expand("", "");
}

TEST(test_other_braces_stay_as_they_are)
{
    expand("{print $1}", "{print $1}");
    expand("{", "{");
    expand("}{", "}{");
    expand("{ids}", "{ids}");
    expand("{{}}", "{the payload}");
    expand("{{{", "{{{");
}

TEST(test_program_name_is_not_expanded)
{
    char **argv;

    ck_assert_int_eq(template_expand(ARGV("{}"), &values, &argv), 0);
    ck_assert_str_eq(argv[0], "{}");
    ck_assert(!template_takes_payload(argv));
    template_free(argv);
    ck_assert(template_takes_payload(ARGV("x", "a", "-{}-")));
}

TEST(test_filled_in_braces_are_not_expanded_again)
{
    struct template_values v = values;
    char **argv;

    v.payload = "{id}";
    v.payload_size = 4;
    ck_assert_int_eq(template_expand(ARGV("x", "{}"), &v, &argv), 0);
    ck_assert_str_eq(argv[1], "{id}");
    template_free(argv);
}

TEST(test_payloads_that_no_argument_can_hold_are_refused)
{
    static char large[131072];
    struct template_values v = values;
    char **argv;

    v.payload = "a\0b";
    v.payload_size = 3;
    ck_assert_int_eq(template_expand(ARGV("x", "{}"), &v, &argv), -EINVAL);
    ck_assert_int_eq(template_expand(ARGV("x", "{id}"), &v, &argv), 0);
    template_free(argv);
    memset(large, 'x', sizeof(large));
    v.payload = large;
    v.payload_size = sizeof(large);
    ck_assert_int_eq(template_expand(ARGV("x", "{}"), &v, &argv), -E2BIG);
    v.payload_size--;
    ck_assert_int_eq(template_expand(ARGV("x", "{}"), &v, &argv), 0);
    template_free(argv);
    ck_assert_int_eq(template_expand(ARGV("x", "-{}"), &v, &argv), -E2BIG);
}

TEST(test_program_is_found_along_the_path)
{
    char *path;

    setenv("PATH", "/nonexistent::/bin:/usr/bin", 1);
    ck_assert_int_eq(template_find_program("sh", &path), 0);
    ck_assert_str_eq(path, "/bin/sh");
    free(path);
    ck_assert_int_eq(template_find_program("/bin/sh", &path), 0);
    free(path);
    ck_assert_int_eq(template_find_program("no-such-program", &path), -ENOENT);
    ck_assert_int_eq(template_find_program("/no/such/program", &path), -ENOENT);
    ck_assert_int_eq(template_find_program("", &path), -ENOENT);
    ck_assert_int_eq(template_find_program("/etc/passwd", &path), -EACCES);
    ck_assert_int_eq(template_find_program("/etc", &path), -EACCES);
    setenv("PATH", "/etc:/usr", 1);
    ck_assert_int_eq(template_find_program("passwd", &path), -EACCES);
}

/* ---- options ---- */

TEST(test_sizes_times_and_statuses_are_understood)
{
    struct outcome_policy policy = {0};
    size_t size;
    usec_t time;

    ck_assert_int_eq(quantity_parse_size("512", &size), 0);
    ck_assert_uint_eq(size, 512);
    ck_assert_int_eq(quantity_parse_size("3M", &size), 0);
    ck_assert_uint_eq(size, 3 << 20);
    ck_assert_int_eq(quantity_parse_time("250ms", &time), 0);
    ck_assert_uint_eq(time, 250000);
    ck_assert_int_eq(quantity_parse_time("2", &time), 0);
    ck_assert_uint_eq(time, 2000000);
    ck_assert_int_eq(options_parse_statuses("1,255", &policy), 0);
    ck_assert(policy.rejected[1] && policy.rejected[255] && !policy.rejected[2]);
}

TEST(test_bad_values_are_refused)
{
    static const char *const sizes[] = {"", "-1", "1X", "M", "99999999999G", " 1", "1 M"};
    static const char *const statuses[] = {"", "0", "256", "1,", ",1", "1 2", "x"};
    struct outcome_policy policy;
    size_t size;
    usec_t time;

    for (size_t i = 0; i < ELEMENTS(sizes); i++) {
        ck_assert_int_eq(quantity_parse_size(sizes[i], &size), -EINVAL);
        ck_assert_int_eq(options_parse_statuses(statuses[i], &policy), -EINVAL);
    }
    ck_assert_int_eq(quantity_parse_time("5h", &time), -EINVAL);
}

TEST(test_options_end_where_the_command_begins)
{
    char **argv = ARGV("troupe-exec", "--max-output=1K", "grep", "--literal", "-h");
    struct exec_options options;

    optind = 1;
    ck_assert_int_eq(options_parse(&options, 5, argv), 0);
    ck_assert_str_eq(options.argv[0], "grep");
    ck_assert(!options.literal);
    ck_assert_uint_eq(options.max_output, 1024);
    ck_assert_uint_eq(options.kill_after, 5 * USEC_PER_SEC);
}

/* ---- command ---- */

static struct command_end end;
static struct reader reader = READER_NULL;

static void run_with(struct command_options options, const char *script)
{
    signal(SIGPIPE, SIG_IGN);
    command_end_deinit(&end);
    options.reader = &reader;
    options.path = "/bin/sh";
    options.argv = ARGV("sh", "-c", (char *)(uintptr_t)script);
    if (options.max_output == 0)
        options.max_output = 1 << 20;
    if (options.kill_after == 0)
        options.kill_after = USEC_INFINITY;
    ck_assert_int_eq(command_run(&options, &end), 0);
}

static void run(const char *script)
{
    run_with((struct command_options){0}, script);
}

static void expect_description(const char *text)
{
    char buffer[256];

    ck_assert_str_eq(outcome_describe(&end, buffer, sizeof(buffer)), text);
}

TEST(test_output_and_status_are_kept)
{
    run("printf hello; exit 3");
    ck_assert(!end.signalled);
    ck_assert_int_eq(end.code, 3);
    ck_assert_uint_eq(end.output_size, 5);
    ck_assert_mem_eq(end.output, "hello", 5);
    expect_description("exited with status 3");
}

TEST(test_last_words_are_part_of_the_reason)
{
    run("echo out of luck >&2; exit 1");
    expect_description("exited with status 1: out of luck");
    run("echo '<3>out of luck' >&2; echo '<7>x <3> <8>' >&2; echo '<8>' >&2; exit 1");
    expect_description("exited with status 1: out of luck\nx <3> <8>\n<8>");
}

TEST(test_only_the_end_of_long_last_words_is_kept)
{
    char text[64];

    run("i=0; while [ $i -lt 3000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1");
    ck_assert_uint_eq(end.tail_size, COMMAND_TAIL_MAX);
    ck_assert_str_eq(outcome_describe(&end, text, 40), "exited with status 1: ne 2998\nline 2999");
}

TEST(test_death_by_signal_is_named)
{
    struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
    run("kill -SEGV $$");
    ck_assert(end.signalled);
    expect_description("killed by SIGSEGV");
    end = (struct command_end){.signalled = true, .code = SIGABRT, .core_dumped = true};
    expect_description("killed by SIGABRT (core dumped)");
    end = (struct command_end){.signalled = true, .code = 60};
    expect_description("killed by signal 60");
}

TEST(test_input_reaches_the_command)
{
    size_t size = 3000000;
    char *data = malloc(size);

    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 13);
    run_with((struct command_options){.input = data, .input_size = size, .max_output = size},
             "cat");
    ck_assert_int_eq(end.code, 0);
    ck_assert_uint_eq(end.output_size, size);
    ck_assert_mem_eq(end.output, data, size);
    free(data);
}

TEST(test_command_that_does_not_read_its_input_is_well)
{
    size_t size = 3000000;
    char *data = calloc(1, size);

    run_with((struct command_options){.input = data, .input_size = size}, "exec true");
    ck_assert_int_eq(end.code, 0);
    free(data);
}

TEST(test_without_input_there_is_nothing_to_read)
{
    run("read x && echo something || echo nothing");
    ck_assert_mem_eq(end.output, "nothing", 7);
}

TEST(test_too_much_output_ends_the_command)
{
    run_with((struct command_options){.max_output = 100000}, "while :; do echo y; done");
    ck_assert_int_eq(end.stop, COMMAND_OVERFLOW);
    ck_assert_uint_le(end.output_size, 100000);
    expect_description("wrote more to standard output than --max-output=");
}

/* Says "go on" until the command has shown that it is up. */
static bool stop_after_output(void *userdata, const struct command_progress *progress)
{
    return progress->output_size > 0;
}

TEST(test_cancelled_command_is_asked_first)
{
    run_with((struct command_options){.tick = stop_after_output},
             "trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.01; done");
    ck_assert_int_eq(end.stop, COMMAND_CANCELLED);
    ck_assert_int_eq(end.code, 9);
    ck_assert_mem_eq(end.output, "up\nbye\n", 7);
}

TEST(test_cancelled_command_that_does_not_listen_is_killed)
{
    run_with((struct command_options){.tick = stop_after_output, .kill_after = 1000},
             "trap '' TERM; echo up; while :; do sleep 0.01; done");
    ck_assert_int_eq(end.stop, COMMAND_CANCELLED);
    ck_assert(end.signalled);
    ck_assert_int_eq(end.code, SIGKILL);
}

TEST(test_nothing_of_the_group_survives_the_command)
{
    int fds[2];
    char c;

    /* The background process holds the pipe's other end: the end of the file is its death. */
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(fds[1], dup2(fds[1], fds[1]));
    run("sleep 1000 & echo started");
    close(fds[1]);
    ck_assert_int_eq(read(fds[0], &c, 1), 0);
    ck_assert_mem_eq(end.output, "started", 7);
}

/* Forks; the child calls `fn`, and has ended or paused when that wrote to the pipe. */
static void fork_and_await(void (*fn)(int ready))
{
    char c;
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    if (fork() == 0) {
        fn(fds[1]);
        _exit(0);
    }
    close(fds[1]);
    ck_assert_int_eq(read(fds[0], &c, 1), 1);
    close(fds[0]);
}

static void trace_a_child(int ready)
{
    const pid_t child = fork();

    (void)setsid();
    if (child == 0) {
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)raise(SIGSTOP);
    }
    if (child > 0 && waitpid(child, NULL, 0) == child && write(ready, "x", 1) != 1)
        return;
    for (;;)
        pause();
}

TEST(test_processes_that_trace_each_other_end)
{
    ck_assert_int_eq(leftovers_begin(), 0);
    fork_and_await(trace_a_child);
    ck_assert(leftovers_end(0, USEC_INFINITY));
    ck_assert_int_eq(waitpid(-1, NULL, 0), -1);
    ck_assert_int_eq(errno, ECHILD);
}

static pid_t tracer;

/* Begins to trace the command, which waits until then. */
static void trace_command(pid_t command)
{
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    if (fork() == 0) {
        (void)setsid();
        alarm(60); /* in case the test fails */
        tracer = ptrace(PTRACE_SEIZE, command, NULL, NULL) == 0 ? getpid() : 0;
        (void)!write(fds[1], &tracer, sizeof(tracer));
        for (;;)
            pause();
    }
    ck_assert_int_eq(read(fds[0], &tracer, sizeof(tracer)), sizeof(tracer));
    ck_assert_int_gt(tracer, 0);
    close(fds[0]);
    close(fds[1]);
}

static bool trace_as_a_child(void *unused, const struct command_progress *progress)
{
    if (tracer == 0)
        trace_command(progress->pid);
    return false;
}

/* Forks; `fn` sets the tracer in the child, which hands it on. Nobody's descendant here. */
static void set_tracer_apart(void (*fn)(pid_t command), pid_t command)
{
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    if (fork() == 0) {
        fn(command);
        _exit(write(fds[1], &tracer, sizeof(tracer)) != sizeof(tracer));
    }
    ck_assert_int_eq(read(fds[0], &tracer, sizeof(tracer)), sizeof(tracer));
    close(fds[0]);
    close(fds[1]);
}

static bool trace_as_a_stranger(void *unused, const struct command_progress *progress)
{
    if (tracer == 0)
        set_tracer_apart(trace_command, progress->pid);
    return false;
}

static void run_traced(bool (*tick)(void *unused, const struct command_progress *progress))
{
    tracer = 0;
    run_with((struct command_options){.tick = tick},
             "t=0; while [ $t = 0 ]; do while read k v; do [ $k = TracerPid: ] && t=$v; done "
             "</proc/$$/status; done; exit 3");
}

TEST(test_a_command_that_one_of_its_own_traces_ends_with_that)
{
    run_traced(trace_as_a_child);
    expect_description("exited with status 3");
    ck_assert_int_eq(kill(tracer, 0), -1);
}

TEST(test_a_command_that_a_stranger_traces_holds_nobody_up)
{
    run_traced(trace_as_a_stranger);
    ck_assert_int_eq(end.stop, COMMAND_TRACED);
    ck_assert(!end.leftovers);
    ck_assert_int_eq(kill(tracer, SIGKILL), 0);
    ck_assert_int_eq(waitpid(end.pid, NULL, 0), end.pid);
    expect_description("ended in an unknown way, because another process traces it");
}

#define LINKS_MAX 5000

/* Each forks the next and ends. */
static void run_away(int ready)
{
    bool told = false;

    for (int i = 0; i < LINKS_MAX; i++) {
        if (!told && i > 10)
            told = write(ready, "x", 1) == 1;
        if (fork() > 0)
            _exit(0);
    }
}

TEST(test_a_chain_of_forks_does_not_hold_up_the_end)
{
    ck_assert_int_eq(leftovers_begin(), 0);
    fork_and_await(run_away);
    /* Which of the two it is, is a matter of luck. */
    if (leftovers_end(0, 100 * USEC_PER_MSEC)) {
        ck_assert_int_eq(waitpid(-1, NULL, 0), -1);
        ck_assert_int_eq(errno, ECHILD);
    }
    while (waitpid(-1, NULL, 0) > 0)
        ;
}

TEST(test_ended_orphans_of_a_command_at_work_are_reaped_and_it_is_not)
{
    int status;
    const pid_t orphan = fork();

    if (orphan == 0)
        _exit(3);
    leftovers_reap(orphan);
    ck_assert_int_eq(waitid(P_PID, (id_t)orphan, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    leftovers_reap(orphan);
    ck_assert_int_eq(waitpid(orphan, &status, WNOHANG), orphan);
    ck_assert_int_eq(WEXITSTATUS(status), 3);
    if (fork() == 0)
        _exit(0);
    ck_assert_int_eq(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
    leftovers_reap(orphan);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

TEST(test_signal_to_this_process_ends_the_command)
{
    char script[64], expected[128];

    snprintf(script, sizeof(script), "kill -TERM %d; while :; do sleep 0.01; done", getpid());
    run(script);
    ck_assert_int_eq(end.stop, COMMAND_TERMINATED);
    ck_assert_int_eq(end.signal, SIGTERM);
    snprintf(expected, sizeof(expected),
             "ended because troupe-exec got SIGTERM, sent by process %d of uid %u", end.pid,
             (unsigned)getuid());
    expect_description(expected);
}

/*
 * As trouped starts every worker; whoever started this test may have ignored some. By system call,
 * since libc refuses to touch the two that it keeps for itself.
 */
static void clean_signals(void)
{
    const unsigned long action[4] = {(unsigned long)SIG_DFL};
    sigset_t none;

    for (int i = 1; i <= SIGRTMAX; i++)
        (void)syscall(SYS_rt_sigaction, i, action, NULL, sizeof(unsigned long));
    sigemptyset(&none);
    ck_assert_int_eq(sigprocmask(SIG_SETMASK, &none, NULL), 0);
}

TEST(test_command_runs_in_a_group_of_its_own_with_clean_signals)
{
    clean_signals();
    run("set -- $(cat /proc/$$/stat); [ $5 = $$ ] && exec grep -E 'Sig(Blk|Ign)' "
        "/proc/self/status");
    ck_assert_int_eq(end.code, 0);
    ck_assert_mem_eq(end.output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n", 50);
}

TEST(test_program_that_cannot_be_executed_is_an_error)
{
    struct command_options options = {.path = "/nonexistent", .argv = ARGV("x"), .reader = &reader};

    ck_assert_int_eq(command_run(&options, &end), -ENOENT);
    options.path = "/etc/passwd";
    ck_assert_int_eq(command_run(&options, &end), -EACCES);
    ck_assert_int_eq(waitpid(-1, NULL, 0), -1);
}

/* Locks the pipe of its output, as long as it lives, once the reader has what it has written. */
#define LOCKS_ITS_PIPE                                                                             \
    "import array, ctypes, fcntl, os, socket, termios\n"                                           \
    "a, b = socket.socketpair()\n"                                                                 \
    "left = array.array('i', [os.write(1, b'up')])\n"                                              \
    "while left[0]: fcntl.ioctl(1, termios.FIONREAD, left)\n"                                      \
    "ctypes.CDLL(None).splice(a.fileno(), None, 1, None, 4096, 0)\n"

TEST(test_a_command_that_locks_its_pipe_is_ended_and_its_output_kept)
{
    struct command_options options = {.path = "/usr/bin/python3",
                                      .argv = ARGV("python3", "-c", LOCKS_ITS_PIPE),
                                      .reader = &reader,
                                      .max_output = 100,
                                      .tick = stop_after_output};

    ck_assert_int_eq(command_run(&options, &end), 0);
    ck_assert_int_eq(end.stop, COMMAND_CANCELLED);
    ck_assert_uint_eq(end.output_size, 2);
    ck_assert(!end.leftovers);
    run("echo next");
    ck_assert_mem_eq(end.output, "next", 4);
}

/* Waits until the descriptor is no pipe any more. */
static void await_no_pipe(const char *path)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct stat status;

    while (stat(path, &status) == 0 && S_ISFIFO(status.st_mode))
        nanosleep(&pause, NULL);
}

/* Locks the pipe of a command's output once the command has closed it. */
static void lock_output(pid_t command)
{
    int ends[2], pipe_fd;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd/1", command);
    pipe_fd = open(path, O_WRONLY);
    tracer = fork();
    if (tracer == 0) {
        alarm(60); /* in case the test fails */
        await_no_pipe(path);
        if (setsid() > 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0)
            (void)splice(ends[0], NULL, pipe_fd, NULL, 4096, 0);
        _exit(0);
    }
}

static bool waits_in_splice(pid_t pid)
{
    char path[64];
    int number = -1;

    snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    (void)!fscanf(file, "%d", &number); /* a process that does not wait has none */
    fclose(file);
    return number == SYS_splice;
}

static char steps[] = "/tmp/test-exec-XXXXXX";

/* The command waits for the file of this name. */
static void make_step(const char *name)
{
    char path[64];

    snprintf(path, sizeof(path), "%s/%s", steps, name);
    close_fd(creat(path, 0600));
}

static bool lock_from_outside(void *unused, const struct command_progress *progress)
{
    if (tracer == 0 && progress->output_size > 0) {
        set_tracer_apart(lock_output, progress->pid);
        make_step("held");
    } else if (tracer > 0 && waits_in_splice(tracer))
        make_step("locked");
    return false;
}

TEST(test_output_that_a_lock_withholds_is_a_failure)
{
    char script[256];

    tracer = 0;
    ck_assert_ptr_nonnull(mkdtemp(steps));
    snprintf(script, sizeof(script),
             "echo up; cd %s; until [ -e held ]; do sleep 0.01; done; exec >/dev/null;"
             "until [ -e locked ]; do sleep 0.01; done; rm -r $PWD",
             steps);
    run_with((struct command_options){.tick = lock_from_outside}, script);
    ck_assert_int_eq(end.stop, COMMAND_UNREAD);
    ck_assert(end.leftovers);
    ck_assert_int_eq(kill(tracer, SIGKILL), 0);
    expect_description("ended, but its output is lost: its reader was killed, or another process "
                       "holds the lock of its pipes");
}

/* Kills the reader once the command is up. */
static bool kill_reader(void *unused, const struct command_progress *progress)
{
    if (progress->output_size > 0 && reader.pid > 0)
        kill(reader.pid, SIGKILL);
    return false;
}

TEST(test_a_command_whose_reader_was_killed_is_ended_and_the_next_one_has_another)
{
    run_with((struct command_options){.tick = kill_reader},
             "echo up; while :; do sleep 0.01; done");
    ck_assert_int_eq(end.stop, COMMAND_UNREAD);
    ck_assert(!end.leftovers);
    run("echo next; echo word >&2; exit 1");
    ck_assert_mem_eq(end.output, "next", 4);
    expect_description("exited with status 1: word");
    ck_assert_int_eq(waitpid(-1, NULL, 0), -1);
}

TEST(test_a_reader_ends_with_its_process)
{
    siginfo_t info;
    int fds[2], status;
    pid_t pid;

    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(leftovers_begin(), 0); /* its reader becomes a child of this one */
    if (fork() == 0) {
        pid = reader_start(&reader) == 0 ? reader.pid : 0;
        _exit(write(fds[1], &pid, sizeof(pid)) != sizeof(pid));
    }
    ck_assert_int_eq(read(fds[0], &pid, sizeof(pid)), sizeof(pid));
    ck_assert_int_gt(pid, 0);
    ck_assert_int_gt(wait(&status), 0);
    ck_assert_int_gt(wait(&status), 0);
    ck_assert_int_eq(waitid(P_ALL, 0, &info, WEXITED), -1);
}

TEST(test_standard_streams_can_be_opened_by_name)
{
    run_with((struct command_options){.input = "in", .input_size = 2},
             "read x </dev/stdin; cat /dev/stdin >/dev/stdout; echo error >/dev/stderr; exit 1");
    ck_assert_uint_eq(end.output_size, 2);
    ck_assert_mem_eq(end.output, "in", 2);
    expect_description("exited with status 1: error");
}

TEST(test_input_cannot_be_written_to)
{
    run_with((struct command_options){.input = "in", .input_size = 2},
             "echo x >>/proc/self/fd/0; echo x >/proc/self/fd/0; cat");
    ck_assert_uint_eq(end.output_size, 2);
    ck_assert_mem_eq(end.output, "in", 2);
}

static int written = -1;

/* Lets go of the program that is being written. */
static bool finish_writing(void *unused, const struct command_progress *progress)
{
    if (progress->pid < 0 && progress->start_error == -ETXTBSY)
        written = close_fd(written);
    return false;
}

/* Runs a copy of "true", which is open for writing. */
static void run_busy(bool (*tick)(void *unused, const struct command_progress *progress))
{
    char path[] = "/tmp/test-exec-XXXXXX";
    struct command_options options = {
        .path = path, .argv = ARGV("x"), .reader = &reader, .tick = tick};
    int program = open("/bin/true", O_RDONLY);

    written = mkostemp(path, O_CLOEXEC);
    ck_assert_int_ge(written, 0);
    while (sendfile(written, program, NULL, 1 << 20) > 0)
        ;
    ck_assert_int_eq(fchmod(written, 0700), 0);
    close(program);
    ck_assert_int_eq(command_run(&options, &end), 0);
    unlink(path);
}

TEST(test_a_command_that_is_being_replaced_is_started_as_soon_as_that_is_over)
{
    run_busy(finish_writing);
    ck_assert_int_eq(written, -1);
    ck_assert_int_eq(end.start_error, 0);
    expect_description("exited with status 0");
}

static bool cancel_unstarted(void *unused, const struct command_progress *progress)
{
    return progress->pid < 0;
}

TEST(test_a_command_that_cannot_be_started_yet_can_be_cancelled)
{
    run_busy(cancel_unstarted);
    ck_assert_int_eq(end.stop, COMMAND_CANCELLED);
    ck_assert_int_eq(end.start_error, -ETXTBSY);
    ck_assert_int_eq(end.pid, 0);
}

static bool terminate_unstarted(void *unused, const struct command_progress *progress)
{
    if (progress->pid < 0)
        kill(getpid(), SIGTERM);
    return false;
}

TEST(test_why_a_command_was_never_started_is_told)
{
    char text[256];

    run_busy(terminate_unstarted);
    ck_assert_int_eq(end.stop, COMMAND_TERMINATED);
    outcome_describe(&end, text, sizeof(text));
    ck_assert_ptr_nonnull(strstr(text, ", before it could be started: Text file busy"));
}

TEST(test_no_descriptor_and_no_child_is_left)
{
    struct command_options missing = {.path = "/nonexistent", .argv = ARGV("x"), .reader = &reader};
    unsigned before = open_descriptors();

    for (int i = 0; i < 20; i++) {
        run("echo x; echo y >&2");
        ck_assert_int_eq(command_run(&missing, &end), -ENOENT);
    }
    ck_assert(reader_end(&reader, USEC_INFINITY));
    ck_assert_uint_eq(open_descriptors(), before);
    ck_assert_int_eq(waitpid(-1, NULL, (int)__WALL), -1);
    ck_assert_int_eq(errno, ECHILD);
}

/* ---- as a worker ---- */

static struct run_context context = {.reader = &reader};
static struct fake fake;

static int run_worker(void)
{
    struct troupe_worker *worker;

    signal(SIGPIPE, SIG_IGN);
    if (troupe_worker_new(&worker) < 0)
        return 90;
    troupe_worker_on_job(worker, run_job, &context);
    int r = troupe_worker_run(worker);
    troupe_worker_free(worker);
    free(context.path);
    return r < 0 ? 91 : 0;
}

static void start(char *const *argv)
{
    context.options.argv = argv;
    context.options.kill_after = USEC_PER_SEC * 5;
    if (context.options.max_output == 0)
        context.options.max_output = 1 << 20;
    context.options.policy.rejected[4] = true;
    ck_assert_int_eq(template_find_program(argv[0], &context.path), 0);
    fake_start(&fake, WAKE_FUTEX, run_worker);
    free(context.path);
    fake_expect(&fake, PROTOCOL_READY);
}

TEST(test_payload_is_input_and_output_is_result)
{
    start(ARGV("tr", "a-z", "A-Z"));
    for (int i = 0; i < 3; i++) {
        fake_do_text(&fake, "hello");
        ck_assert_int_eq(fake.outcome, PROTOCOL_SUCCESS);
        ck_assert_str_eq(fake.data, "HELLO");
    }
    fake_stop(&fake);
}

TEST(test_payload_as_argument_is_not_input)
{
    start(ARGV("sh", "-c", "echo $1 $2 $3 $TROUPE_JOB_ID $TROUPE_JOB_KEY; cat", "sh", "{}", "{id}",
               "{attempt}"));
    fake_do_text(&fake, "$(id)");
    ck_assert_str_eq(fake.data, "$(id) job-1 1 job-1 key\n");
    fake_stop(&fake);
}

static void expect_variables(bool key, uint32_t attempt, const char *text)
{
    fake.no_key = !key;
    fake_send(&fake, "", 0, attempt);
    fake_started(&fake);
    fake_result(&fake);
    ck_assert_str_eq(fake.data, text);
}

TEST(test_variables_are_those_of_the_job)
{
    start(ARGV("sh", "-c", "echo $TROUPE_JOB_ID $TROUPE_JOB_ATTEMPT ${TROUPE_JOB_KEY-none}"));
    expect_variables(true, 1, "job-1 1 key\n");
    expect_variables(false, 2, "job-1 2 none\n");
    expect_variables(false, 10, "job-1 10 none\n");
    expect_variables(true, 3, "job-1 3 key\n");
    fake_stop(&fake);
}

TEST(test_large_result_of_a_command_is_a_blob)
{
    static char data[50000];

    start(ARGV("cat"));
    fake_do(&fake, data, sizeof(data));
    ck_assert_int_eq(fake.form, PAYLOAD_BLOB);
    ck_assert_uint_eq(fake.size, 50000);
    fake_stop(&fake);
}

TEST(test_exit_statuses_are_failures_or_answers)
{
    start(ARGV("sh"));
    fake_do_text(&fake, "echo broken >&2; exit 3");
    fake_ended(&fake, PROTOCOL_RETRY, 3, "exited with status 3: broken");
    fake_do_text(&fake, "echo reason >&2; exit 4");
    fake_ended(&fake, PROTOCOL_REJECT, 4, "reason\n");
    fake_do_text(&fake, "echo answer; echo reason >&2; exit 4");
    ck_assert_str_eq(fake.data, "answer\n");
    fake_do_text(&fake, "kill -KILL $$");
    fake_ended(&fake, PROTOCOL_RETRY, 137, "killed by SIGKILL");
    fake_stop(&fake);
}

TEST(test_a_death_by_a_signal_is_reported_before_the_result)
{
    start(ARGV("sh", "-c", "[ $1 = 0 ] || kill -$1 $$", "x", "{}"));
    fake_do_text(&fake, "SEGV");
    ck_assert_int_eq(fake.crash.signal, SIGSEGV);
    ck_assert_int_gt(fake.crash.pid, 1);
    ck_assert_int_ne(fake.crash.pid, fake.pid);
    ck_assert_uint_gt(fake.crash.max_rss, 100000);
    ck_assert_uint_gt(fake.crash.uptime, 0);
    ck_assert_str_eq(fake.command, "sh -c [ $1 = 0 ] || kill -$1 $$ x {}");
    fake_do_text(&fake, "0");
    ck_assert_int_eq(fake.crash.signal, 0);
    fake_stop(&fake);
}

/* Makes a script that begins with `line`. */
static void write_script(char *path, const char *line)
{
    int fd = mkostemp(path, O_CLOEXEC);

    ck_assert_int_eq(write(fd, line, strlen(line)), (ssize_t)strlen(line));
    ck_assert_int_eq(fchmod(fd, 0700), 0);
    close(fd);
}

TEST(test_the_missing_interpreter_of_a_script_is_named)
{
    static const struct {
        const char *line, *reason;
    } scripts[] = {
        {"#!/bin/sh\r\n",
         "its interpreter /bin/sh, followed by a carriage return: the script has DOS "
         "line ends (CR LF): No such file or directory"},
        {"#! /no/such -x\n", "its interpreter /no/such: No such file or directory"},
        {"#!/etc/passwd", "its interpreter /etc/passwd: Permission denied"},
    };

    for (size_t i = 0; i < ELEMENTS(scripts); i++) {
        char path[] = "/tmp/test-exec-XXXXXX", reason[256];

        write_script(path, scripts[i].line);
        start(ARGV(path));
        fake_do_text(&fake, "");
        ck_assert_int_eq(fake.outcome, PROTOCOL_RETRY);
        snprintf(reason, sizeof(reason), "cannot run %s: %s", path, scripts[i].reason);
        ck_assert_str_eq(fake.data, reason);
        fake_stop(&fake);
        unlink(path);
    }
}

TEST(test_payload_that_no_argument_can_hold_is_final)
{
    start(ARGV("echo", "{}"));
    fake_do(&fake, "a\0b", 3);
    fake_ended(&fake, PROTOCOL_REJECT, EINVAL, NULL);
    fake_stop(&fake);
}

/* Sends a job to a command that does not end, and waits until that runs. */
static void begin(char *state)
{
    size_t size;

    start(ARGV("sleep", "1000"));
    fake_send(&fake, NULL, 0, 1);
    fake_started(&fake);
    do
        if (memory_state_read(&fake.channel.theirs, state, &size) < 0)
            size = 0; /* in the middle of a write */
    while (size == 0);
    state[size] = '\0';
}

TEST(test_cancel_flag_ends_the_command_and_its_state_tells_its_pid)
{
    char state[MEMORY_STATE_MAX + 1];

    begin(state);
    ck_assert_ptr_nonnull(strstr(state, "{\"pid\":"));
    fake_cancel(&fake);
    fake_result(&fake);
    ck_assert_int_eq(fake.outcome, PROTOCOL_CANCELLED);
    fake_stop(&fake);
}

TEST(test_terminated_worker_ends_its_command_tells_and_dies)
{
    char state[MEMORY_STATE_MAX + 1];

    begin(state);
    kill(fake.pid, SIGTERM);
    fake_result(&fake);
    fake_ended(&fake, PROTOCOL_RETRY, EINTR, NULL);
    int status = fake_wait(&fake);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* Commands' standard error is passed on: here nobody wants to read it. */
static void silence(void)
{
    int fd = open("/dev/null", O_WRONLY);

    dup2(fd, STDERR_FILENO);
    close(fd);
}

const struct suite suite = {.setup = silence};

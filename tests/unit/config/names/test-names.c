/* SPDX-License-Identifier: MIT */
#include "supervisor/config/names/names-private.h"
#include "tests/unit/suite.h"
#include <linux/filter.h>
#include <poll.h>
#include <pwd.h>
#include <sys/ptrace.h>

static bool copied; /* true in this process, and so in a copy of it */

/* In place of the C library's: a name service that answers, does not, or crashes. */
struct passwd *getpwnam(const char *name)
{
    static char directory[] = "/home/alice", shell[] = "/bin/sh", known[] = "alice";
    static struct passwd entry = {
        .pw_name = known, .pw_uid = 4711, .pw_gid = 42, .pw_dir = directory, .pw_shell = shell};

    while (strcmp(name, "slow") == 0)
        pause();
    if (strcmp(name, "crash") == 0)
        raise(SIGKILL);
    return strcmp(name, copied ? "copy" : "alice") == 0 ? &entry : NULL;
}

static struct names names;

static void setup(void)
{
    names = (struct names)NAMES_NULL;
}

static void teardown(void)
{
    names_deinit(&names);
    copied = false;
}

static const struct name *user(const char *wanted)
{
    const struct name *name = names_find(&names, NAMES_USER, wanted);

    ck_assert_ptr_nonnull(name);
    return name;
}

static void want(const char *wanted)
{
    ck_assert_int_eq(names_want(&names, NAMES_USER, wanted), 0);
}

static void check_alice(void)
{
    const struct name *alice = user("alice");

    ck_assert_int_eq(alice->error, 0);
    ck_assert_str_eq(alice->name, "alice");
    ck_assert_uint_eq(alice->uid, 4711);
    ck_assert_uint_eq(alice->gid, 42);
    ck_assert_uint_ge(alice->n_groups, 1);
    ck_assert_str_eq(alice->environment[0], "USER=alice");
    ck_assert_str_eq(alice->environment[1], "LOGNAME=alice");
    ck_assert_str_eq(alice->environment[2], "HOME=/home/alice");
    ck_assert_str_eq(alice->environment[3], "SHELL=/bin/sh");
    ck_assert_ptr_null(alice->environment[4]);
}

/* Not under Valgrind: it is what /proc/self/exe then leads to. */
TEST(another_process_finds_what_this_one_would, .native = true)
{
    want("alice");
    want("alice");
    want("bob");
    want("0");
    ck_assert_int_eq(names_want(&names, NAMES_GROUP, "0"), 0);
    ck_assert_int_eq(names_want(&names, NAMES_GROUP, NULL), 0);
    ck_assert_uint_eq(names.n_names, 4);
    ck_assert_ptr_null(names_find(&names, NAMES_USER, "alice"));
    ck_assert_int_eq(names_wait(&names), 0);
    check_alice();
    ck_assert_int_eq(user("bob")->error, ENOENT);
    ck_assert_str_eq(user("0")->name, "root");
    ck_assert_uint_eq(names_find(&names, NAMES_GROUP, "0")->gid, 0);
    ck_assert_int_eq(names.pid, 0);
}

TEST(the_other_process_is_no_copy_of_this_one, .native = true)
{
    copied = true; /* a fork() of a supervisor that holds many payloads takes long */
    want("copy");
    ck_assert_int_eq(names_wait(&names), 0);
    ck_assert_int_eq(user("copy")->error, ENOENT);
}

TEST(this_process_finds_it_too)
{
    want("alice");
    ck_assert_int_eq(names_look_up(&names), 0);
    check_alice();
}

static const struct name *found(enum names_kind kind, const char *wanted)
{
    const struct name *name = names_find(&names, kind, wanted);

    ck_assert_ptr_nonnull(name);
    return name;
}

TEST(filters_are_compiled, .n = 2)
{
    static const char settings[] = "calls 1 ~mount", broken[] = "nothing";

    if (_i == 1 && under_valgrind())
        return;
    ck_assert_int_eq(names_want(&names, NAMES_FILTER, settings), 0);
    ck_assert_int_eq(names_want(&names, NAMES_FILTER, broken), 0);
    ck_assert_int_eq(_i == 0 ? names_look_up(&names) : names_wait(&names), 0);
    ck_assert_int_eq(found(NAMES_FILTER, settings)->error, 0);
    ck_assert_uint_gt(found(NAMES_FILTER, settings)->size, 0);
    ck_assert_uint_eq(found(NAMES_FILTER, settings)->size % sizeof(struct sock_filter), 0);
    ck_assert_int_eq(found(NAMES_FILTER, broken)->error, EINVAL);
}

static void write_file(char *path, const char *contents, size_t size)
{
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, contents, size), (ssize_t)size);
    close(fd);
}

/* `_i`: in this process, or in another one. */
TEST(files_are_looked_at, .n = 2)
{
    static const char contents[] = "A=1\nB=\0";
    char path[] = "/tmp/test-names-XXXXXX", empty[] = "/tmp/test-names-XXXXXX",
         script[] = "/tmp/test-names-XXXXXX";
    const struct {
        enum names_kind kind;
        const char *wanted, *fault;
    } faults[] = {
        {NAMES_PROGRAM, path, "not executable"},
        {NAMES_PROGRAM_OF_USER, path, "not executable"},
        {NAMES_PROGRAM, script, "its interpreter /no/such: No such file or directory"},
        {NAMES_PROGRAM, "/tmp", "not a regular file"},
        {NAMES_PROGRAM, "/no/such", "no such file"},
        {NAMES_PROGRAM, "no-such-program", "No such file or directory"},
        {NAMES_DIRECTORY, path, "not a directory"},
        {NAMES_DIRECTORY, "/no/such", "No such file or directory"},
        {NAMES_FILE, "/tmp", "not a regular file"},
        {NAMES_FILE, "/no/such", "No such file or directory"},
    };

    if (_i == 1 && under_valgrind())
        return;
    write_file(path, contents, sizeof(contents));
    write_file(empty, "", 0);
    write_file(script, "#!/no/such\n", 11);
    ck_assert_int_eq(chmod(script, 0700), 0);
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        ck_assert_int_eq(names_want(&names, faults[i].kind, faults[i].wanted), 0);
    ck_assert_int_eq(names_want(&names, NAMES_PROGRAM, "sh"), 0);
    ck_assert_int_eq(names_want(&names, NAMES_DIRECTORY, "/"), 0);
    ck_assert_int_eq(names_want(&names, NAMES_FILE, path), 0);
    ck_assert_int_eq(names_want(&names, NAMES_FILE, empty), 0);
    ck_assert_int_eq(_i == 0 ? names_look_up(&names) : names_wait(&names), 0);
    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
        ck_assert_int_ne(found(faults[i].kind, faults[i].wanted)->error, 0);
        ck_assert_str_eq(names_fault(found(faults[i].kind, faults[i].wanted)), faults[i].fault);
    }
    ck_assert_str_eq(
        found(NAMES_PROGRAM, "sh")->name + strlen(found(NAMES_PROGRAM, "sh")->name) - 3, "/sh");
    ck_assert_int_eq(found(NAMES_DIRECTORY, "/")->error, 0);
    ck_assert_uint_eq(found(NAMES_FILE, path)->size, sizeof(contents));
    ck_assert_mem_eq(found(NAMES_FILE, path)->name, contents, sizeof(contents));
    ck_assert_int_eq(found(NAMES_FILE, empty)->error, 0);
    ck_assert_uint_eq(found(NAMES_FILE, empty)->size, 0);
    (void)unlink(path);
    (void)unlink(empty);
    (void)unlink(script);
}

TEST(a_crash_takes_only_its_own_name_along, .native = true)
{
    want("crash");
    want("alice");
    ck_assert_int_eq(names_wait(&names), 0);
    ck_assert_int_eq(user("crash")->error, EIO);
    check_alice();
}

TEST(no_answer_takes_only_its_own_name_along, .native = true)
{
    want("slow");
    want("alice");
    ck_assert_int_eq(names_start(&names), 0);
    ck_assert_int_ne(names.pid, 0);
    ck_assert_int_eq(names_skip(&names, ETIMEDOUT), 0);
    while (names.pid != 0) {
        ck_assert_int_eq(poll(&(struct pollfd){.fd = names.fd, .events = POLLIN}, 1, -1), 1);
        ck_assert_int_eq(names_read(&names), 0);
    }
    ck_assert_int_eq(user("slow")->error, ETIMEDOUT);
    check_alice();
}

/* Returns a process that traces `pid`, which hides the end of that from its parent; 0 if it may
 * not. */
static pid_t trace(pid_t pid)
{
    char byte = 0;
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    pid_t tracer = fork();
    ck_assert_int_ge(tracer, 0);
    if (tracer == 0) {
        if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 || write(fds[1], &byte, 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    (void)close(fds[1]);
    if (read(fds[0], &byte, 1) != 1)
        tracer = 0;
    (void)close(fds[0]);
    return tracer;
}

TEST(a_process_that_is_not_seen_to_end_is_not_waited_for, .native = true)
{
    siginfo_t end;

    want("slow");
    ck_assert_int_eq(names_start(&names), 0);
    pid_t traced = names.pid;
    pid_t tracer = trace(traced);
    if (tracer == 0)
        return; /* only root may */
    names_give_up(&names);
    ck_assert_int_eq(names.pid, 0);
    ck_assert_int_eq(kill(traced, 0), 0);
    ck_assert_int_eq(kill(tracer, SIGKILL), 0);
    ck_assert_int_eq(waitpid(tracer, NULL, 0), tracer);
    ck_assert_int_eq(waitid(P_PID, (id_t)traced, &end, WEXITED | WNOWAIT), 0);
    want("alice");
    ck_assert_int_eq(names_wait(&names), 0);
    check_alice();
    names_reap();
    ck_assert_int_eq(kill(traced, 0), -1);
}

TEST(what_is_given_up_is_known_to_be_unknown)
{
    want("slow");
    want("alice");
    ck_assert_int_eq(names_start(&names), 0);
    names_give_up(&names);
    ck_assert_int_eq(names.pid, 0);
    ck_assert_int_eq(user("slow")->error, ETIMEDOUT);
    ck_assert_int_eq(user("alice")->error, ETIMEDOUT);
}

TEST(an_answer_that_makes_no_sense_is_refused)
{
    struct name found = {.kind = NAMES_USER}, name = {.kind = NAMES_USER};
    char alice[] = "alice", *bytes = NULL;
    uint32_t size = 0;

    found.wanted = alice;
    ck_assert_int_eq(names_ask(&found), 0);
    ck_assert_int_eq(names_put(&found, &bytes, &size), 0);
    for (uint32_t cut = 0; cut < size; cut++) {
        int r = names_get(&name, bytes, cut);

        ck_assert(r == -EBADMSG || (r == 0 && cut > 16));
        names_clear(&name);
    }
    memset(bytes + 12, 0xff, 4); /* so many groups cannot be in it */
    ck_assert_int_eq(names_get(&name, bytes, size), -EBADMSG);
    names_clear(&found);
    free(bytes);
}

const struct suite suite = {
    .setup = setup, .teardown = teardown, .argument = NAMES_ARGUMENT, .with_argument = names_serve};

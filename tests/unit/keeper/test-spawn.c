/* SPDX-License-Identifier: MIT */
#include "shared/base/landlock.h"
#include "supervisor/keeper/sandbox-mount.h"
#include "tests/unit/fake-keeper.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static char *const environment[] = {"PATH=/usr/bin:/bin", "GREETING=hello", NULL};
static char output[8192];

/* Runs a shell command with standard output and error as `output`, and the options given. */
static struct spawn_exit run_shell(const char *command, struct spawn_options options)
{
    char *const argv[] = {"/bin/sh", "-c", (char *)command, NULL};
    struct spawn_fd fds[SPAWN_FDS_MAX];
    struct spawn_result result;
    const char *step = "";
    int pipe_fds[2];
    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    for (size_t i = 0; i < options.n_fds; i++)
        fds[i] = options.fds[i];
    fds[options.n_fds] = (struct spawn_fd){pipe_fds[1], 1};
    fds[options.n_fds + 1] = (struct spawn_fd){pipe_fds[1], 2};
    options.argv = argv;
    options.environment = environment;
    options.fds = fds;
    options.n_fds += 2;
    options.cgroup_fd = -1;
    int r = spawn_and_wait(&options, &result, &step);
    ck_assert_msg(r == 0, "%s: %s", step, strerror(-r));
    close_fd(pipe_fds[1]);
    size_t size = 0;
    for (ssize_t n; (n = read(pipe_fds[0], output + size, sizeof(output) - 1 - size)) > 0;)
        size += (size_t)n;
    output[size] = '\0';
    close_fd(pipe_fds[0]);
    ck_assert_int_gt(result.pid, 0);
    return reap_and_close(&result);
}

/* Expects that "true" does not start, and at which step. */
static void expect_failure(struct spawn_options options, int error, const char *expected)
{
    char *const argv[] = {"/bin/true", NULL};
    struct spawn_result result;
    const char *step;
    options.argv = argv;
    options.environment = environment;
    options.cgroup_fd = -1;
    ck_assert_int_eq(spawn_and_wait(&options, &result, &step), error);
    ck_assert_str_eq(step, expected);
}

static bool is_root(const char *what)
{
    if (getuid() == 0)
        return true;
    printf("skipped: only root %s\n", what);
    return false;
}

TEST(a_process_that_still_runs_is_not_reaped)
{
    char *const argv[] = {"/bin/cat", NULL};
    struct spawn_result result;
    struct spawn_exit how;
    const char *step;
    int fds[2];
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    struct spawn_options options = {.argv = argv,
                                    .environment = environment,
                                    .fds = &(struct spawn_fd){fds[0], 0},
                                    .n_fds = 1,
                                    .cgroup_fd = -1};
    ck_assert_int_eq(spawn_and_wait(&options, &result, &step), 0);
    ck_assert_int_eq(spawn_reap(result.pid, &how), -EAGAIN);
    close_fd(fds[0]);
    close_fd(fds[1]); /* the end of its input */
    how = reap_and_close(&result);
    ck_assert_int_eq(how.code, 0);
}

TEST(a_program_that_is_not_there_fails_at_exec_and_leaves_nothing)
{
    char *const argv[] = {"/nonexistent", NULL};
    struct spawn_options options = {.argv = argv, .environment = environment, .cgroup_fd = -1};
    struct spawn_result result;
    const char *step;
    (void)run_shell("true", (struct spawn_options){0});
    unsigned before = open_descriptors();
    ck_assert_int_eq(spawn_and_wait(&options, &result, &step), -ENOENT);
    ck_assert_str_eq(step, "exec");
    ck_assert_uint_eq(open_descriptors(), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    ck_assert_int_eq(errno, ECHILD);
}

TEST(a_directory_that_is_not_there_fails_at_chdir)
{
    expect_failure((struct spawn_options){.working_directory = "/nonexistent"}, -ENOENT, "chdir");
}

TEST(a_descriptor_that_is_not_open_fails_before_exec)
{
    expect_failure((struct spawn_options){.fds = &(struct spawn_fd){1000, 3}, .n_fds = 1}, -EBADF,
                   "descriptors");
}

TEST(nothing_is_inherited_but_what_is_listed)
{
    int leak = open("/dev/null", O_RDONLY); /* not even close-on-exec */
    ck_assert_int_ge(leak, 0);
    ck_assert_int_ge(fcntl(leak, F_DUPFD, 100), 100);
    int listed = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    struct spawn_fd fds[] = {{listed, 9}};
    (void)run_shell("ls /proc/$$/fd; readlink /proc/$$/fd/0 /proc/$$/fd/9",
                    (struct spawn_options){.fds = fds, .n_fds = 1});
    ck_assert_str_eq(output, "0\n1\n2\n9\n/dev/null\n/dev/zero\n");
}

/* 3 -> 4, 4 -> 5, 5 -> 3: in whatever order, a plain dup2() would overwrite one before it is
 * copied. */
TEST(descriptors_may_swap_their_numbers)
{
    const char *names[] = {"/dev/zero", "/dev/full", "/dev/null"};
    struct spawn_fd fds[] = {{40, 41}, {41, 42}, {42, 40}};
    for (int i = 0; i < 3; i++) {
        int fd = open(names[i], O_RDONLY | O_CLOEXEC);
        ck_assert_int_eq(dup3(fd, 40 + i, O_CLOEXEC), 40 + i);
    }
    (void)run_shell("readlink /proc/$$/fd/40 /proc/$$/fd/41 /proc/$$/fd/42",
                    (struct spawn_options){.fds = fds, .n_fds = 3});
    ck_assert_str_eq(output, "/dev/null\n/dev/zero\n/dev/full\n");
}

TEST(signals_are_unblocked_and_at_their_default)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    spawn_reset_ignored_signals();
    (void)run_shell("grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status", (struct spawn_options){0});
    ck_assert_ptr_nonnull(strstr(output, "SigBlk:\t0000000000000000"));
    ck_assert_msg(strstr(output, "SigIgn:\t0000000000000000"), "%s", output);
    sigset_t now;
    sigprocmask(SIG_SETMASK, NULL, &now);
    ck_assert_int_eq(sigismember(&now, SIGTERM), 1);
}

TEST(it_leads_a_process_group_of_its_own)
{
    (void)run_shell("set -- $(cat /proc/$$/stat); [ $5 = $$ ] && pwd", (struct spawn_options){0});
    ck_assert_str_eq(output, "/\n");
}

TEST(limits_nice_and_oom_score_are_set)
{
    const struct spawn_rlimit limits[] = {{RLIMIT_NOFILE, {24, 24}}, {RLIMIT_CORE, {0, 0}}};
    (void)run_shell("ulimit -n; ulimit -c; nice; cat /proc/self/oom_score_adj",
                    (struct spawn_options){.rlimits = limits,
                                           .n_rlimits = 2,
                                           .set_nice = true,
                                           .nice = 5,
                                           .set_oom_score_adjust = true,
                                           .oom_score_adjust = 321,
                                           .working_directory = "/tmp"});
    ck_assert_str_eq(output, "24\n0\n5\n321\n");
}

static void give_up_privileges(void)
{
    if (getuid() == 0) /* who may write what is root's */
        ck_assert_int_eq(setuid(65534), 0);
    ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1), 0);
}

TEST(the_oom_score_is_set_though_the_supervisor_is_not_dumpable)
{
    char before[16] = "", after[16] = "";
    give_up_privileges();
    int own = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
    ck_assert_int_gt(pread(own, before, sizeof(before) - 1, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 0), 0);
    for (int i = 0; i < 20; i++) {
        (void)run_shell(
            "cat /proc/$$/oom_score_adj",
            (struct spawn_options){.set_oom_score_adjust = true, .oom_score_adjust = 400 + i});
        ck_assert_int_eq(atoi(output), 400 + i);
    }
    (void)run_shell("cat /proc/$$/oom_score_adj", (struct spawn_options){0});
    ck_assert_str_eq(output, before);
    ck_assert_int_gt(pread(own, after, sizeof(after) - 1, 0), 0);
    ck_assert_str_eq(after, before);
    ck_assert_int_eq(prctl(PR_GET_DUMPABLE), 0);
    close_fd(own);
}

TEST(an_oom_score_that_cannot_be_set_is_an_error)
{
    give_up_privileges();
    expect_failure((struct spawn_options){.set_oom_score_adjust = true, .oom_score_adjust = -1000},
                   -EACCES, "oom-score-adjust");
}

/* As AmbientCapabilities= of a unit does it. */
static void raise_ambient(unsigned long capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
    data[0].inheritable |= 1u << capability;
    ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
    ck_assert_int_eq(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0), 0);
}

/* A supervisor that is no root, but may change users. */
static void be_privileged_user(void)
{
    ck_assert_int_eq(prctl(PR_SET_KEEPCAPS, 1), 0);
    ck_assert_int_eq(setresgid(65533, 65533, 65533), 0);
    ck_assert_int_eq(setresuid(65533, 65533, 65533), 0);
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
    data[0].effective = data[0].permitted;
    ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
    raise_ambient(CAP_SETUID);
    raise_ambient(CAP_SETGID);
}

static void expect_no_capabilities(const char *sets)
{
    char line[64];
    for (; *sets; sets += 3) {
        (void)snprintf(line, sizeof(line), "Cap%.3s:\t0000000000000000", sets);
        ck_assert_msg(strstr(output, line), "no %s in\n%s", line, output);
    }
}

TEST(a_worker_with_a_user_has_no_capability_and_no_way_to_one)
{
    if (!is_root("has capabilities to lose"))
        return;
    for (int i = 0; i < 2; i++) {
        (void)run_shell("grep -E '^Cap|^NoNew' /proc/$$/status",
                        (struct spawn_options){.set_user = true, .uid = 65534, .gid = 65534});
        expect_no_capabilities("InhPrmEffAmb");
        ck_assert_ptr_nonnull(strstr(output, "NoNewPrivs:\t1"));
        if (i == 0) {
            ck_assert_ptr_nonnull(strstr(output, "CapBnd:\t0000000000000000"));
            be_privileged_user();
        }
    }
}

TEST(a_worker_has_the_capabilities_of_its_sandbox)
{
    const struct sandbox sandbox = {
        .bounding = UINT64_C(1) << CAP_KILL | UINT64_C(1) << CAP_CHOWN,
        .ambient = UINT64_C(1) << CAP_KILL,
    };
    if (!is_root("has capabilities to hand on"))
        return;
    for (int root = 0; root < 2; root++) {
        const uid_t uid = root ? 0 : 65534;
        (void)run_shell(
            "grep -E '^Cap' /proc/$$/status",
            (struct spawn_options){.set_user = true, .uid = uid, .gid = uid, .sandbox = &sandbox});
        ck_assert_msg(
            strstr(output, root ? "CapPrm:\t0000000000000021" : "CapPrm:\t0000000000000020"), "%s",
            output);
        ck_assert_ptr_nonnull(strstr(output, "CapInh:\t0000000000000020"));
        ck_assert_ptr_nonnull(strstr(output, "CapAmb:\t0000000000000020"));
        ck_assert_ptr_nonnull(strstr(output, "CapBnd:\t0000000000000021"));
    }
}

TEST(a_sandbox_decides_about_new_privileges_and_modes_of_files)
{
    const bool set_already = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    struct sandbox sandbox = {.bounding = UINT64_MAX, .set_umask = true, .umask = 057};
    for (int i = 0; i < 2; i++) {
        sandbox.no_new_privileges = i > 0;
        (void)run_shell("umask; grep NoNewPrivs /proc/$$/status",
                        (struct spawn_options){.sandbox = &sandbox});
        ck_assert_str_eq(output, i > 0 || set_already ? "0057\nNoNewPrivs:\t1\n"
                                                      : "0057\nNoNewPrivs:\t0\n");
    }
}

TEST(filters_are_loaded_also_by_those_who_must_give_up_privileges_for_it)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_umask, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sandbox sandbox = {.bounding = UINT64_MAX, .filter = {code, sizeof(code)}};
    static const char command[] = "umask 7; umask; grep '^Seccomp:' /proc/$$/status";
    (void)run_shell(command, (struct spawn_options){.sandbox = &sandbox});
    ck_assert_ptr_nonnull(strstr(output, "Seccomp:\t2"));
    give_up_privileges();
    (void)run_shell(command, (struct spawn_options){.sandbox = &sandbox});
    ck_assert_ptr_nonnull(strstr(output, "Seccomp:\t2"));
}

TEST(a_sandbox_that_cannot_be_made_fails_the_start)
{
    struct sock_filter bad = BPF_STMT(BPF_MISC, 0);
    const struct sandbox sandbox = {.bounding = UINT64_MAX, .filter = {&bad, sizeof(bad)}};
    expect_failure((struct spawn_options){.sandbox = &sandbox}, -EINVAL, "sandbox");
}

/* A directory with a file in each of two directories, which anybody may write. */
static char top[] = "/tmp/test-spawn-XXXXXX";

static void make_tree(void)
{
    char command[256];
    ck_assert_ptr_nonnull(mkdtemp(top));
    (void)snprintf(command, sizeof(command),
                   "cd %s && mkdir a b && echo x >a/file && echo x >b/file && chmod -R a+rwX .",
                   top);
    (void)run_shell(command, (struct spawn_options){0});
    ck_assert_str_eq(output, "");
}

static void remove_tree(void)
{
    char command[64];
    (void)snprintf(command, sizeof(command), "rm -r %s", top);
    (void)run_shell(command, (struct spawn_options){0});
    ck_assert_str_eq(output, "");
}

#define TRY "echo y 2>&- >"
#define SAY " && echo yes || echo no; "

TEST(without_privileges_files_stay_as_they_are_but_proc_does_not)
{
    struct sandbox_files files = {.n_paths = 1, .paths = {{SANDBOX_INACCESSIBLE, false, "/etc"}}};
    give_up_privileges();
    (void)run_shell("cat /etc/passwd >/dev/null" SAY, (struct spawn_options){.files = &files});
    ck_assert_str_eq(output, "yes\n");
    ck_assert_int_eq(spawned_state.files, SANDBOX_NOT_AT_ALL);
    files.paths[0] = (struct sandbox_path){SANDBOX_PROC, false, "/proc"};
    expect_failure((struct spawn_options){.files = &files}, -EPERM, "mount namespace");
}

/* As root has them. */
static void run_with_mounts(const char *command, struct sandbox_files *files)
{
    const struct sandbox sandbox = {.bounding = UINT64_MAX, .no_new_privileges = true};
    (void)run_shell(command, (struct spawn_options){.sandbox = &sandbox, .files = files});
    ck_assert_int_eq(spawned_state.files, SANDBOX_BY_MOUNTS);
}

/* In a chroot whose root is not mounted, mounts could not be kept from other processes. */
static bool can_mount(void)
{
    const struct sandbox_files none = {0};
    const struct sandbox_path *path;
    int status = 0;
    pid_t pid;
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        _exit(-sandbox_files_separate(&none, &path));
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert(status == 0 || WEXITSTATUS(status) == EINVAL || WEXITSTATUS(status) == EPERM);
    if (status != 0)
        printf("skipped: no mounts of its own: %s\n", strerror(WEXITSTATUS(status)));
    return status == 0;
}

TEST(a_read_only_root_leaves_devices_that_can_be_written)
{
    struct sandbox_files files = {.n_paths = 1, .paths = {{SANDBOX_READ_ONLY, false, "/"}}};
    if (!can_mount())
        return;
    run_with_mounts(TRY "/dev/null" SAY TRY "/dev/shm/test-spawn" SAY TRY "/tmp/test-spawn" SAY,
                    &files);
    ck_assert_str_eq(output, "yes\nno\nno\n");
}

static void make_new_root(void)
{
    char target[256], links[3][64], command[512];
    struct sandbox_files files = {.private_root = true, .n_paths = 8};
    static const char *const system[] = {"/bin", "/lib", "/lib64", "/proc", "/usr"};
    make_tree();
    for (int i = 0; i < 5; i++)
        files.paths[i] = (struct sandbox_path){SANDBOX_VISIBLE, true, system[i]};
    (void)snprintf(target, sizeof(target), "%s/a/%0150d", top, 1);
    ck_assert_int_eq(mkdir(target, 0755), 0);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(links[i], sizeof(links[i]), "%s/link%d", top, i);
        ck_assert_int_eq(symlink(target, links[i]), 0);
        files.paths[5 + i] = (struct sandbox_path){SANDBOX_VISIBLE, false, links[i]};
    }
    const int link = mount_open(links[0]);
    (void)snprintf(command, sizeof(command), "ls %s" SAY, top);
    run_with_mounts(command, &files);
    const bool all = strcmp(output, "a\nlink0\nlink1\nlink2\nyes\n") == 0;
    remove_tree();
    ck_assert(all);
    ck_assert_int_eq(link, -ELOOP);
}

TEST(a_new_root_has_room_for_long_links)
{
    if (can_mount())
        make_new_root();
}

/* As under RestrictSUIDSGID=yes of a unit. */
TEST(a_new_root_can_be_made_without_openat2)
{
    if (!can_mount())
        return;
    refuse_call(SYS_openat2, ENOSYS);
    make_new_root();
}

TEST(a_strict_sandbox_does_without_nothing)
{
    const struct sandbox sandbox = {.bounding = UINT64_MAX, .strict = true},
                         limited = {.bounding = 0, .no_new_privileges = true, .strict = true};
    const struct sandbox_files files = {.n_paths = 1,
                                        .paths = {{SANDBOX_READ_ONLY, false, "/usr"}}};
    give_up_privileges();
    expect_failure((struct spawn_options){.sandbox = &sandbox, .files = &files}, -EPERM,
                   "Strict=yes: mounts of its own, for the keys about files");
    expect_failure((struct spawn_options){.sandbox = &limited}, -EPERM, "Strict=yes: capabilities");
}

/* As with User= in a supervisor without CAP_SETPCAP. */
TEST(what_could_not_be_limited_is_reported)
{
    const struct sandbox sandbox = {.bounding = 0, .no_new_privileges = true};
    give_up_privileges();
    (void)run_shell("true", (struct spawn_options){.sandbox = &sandbox});
    ck_assert(spawned_state.not_bounded && !spawned_state.bounded);
    ck_assert(spawned_state.no_new_privileges);
}

TEST(signals_stay_inside_where_the_kernel_can_keep_them)
{
    const struct sandbox sandbox = {
        .bounding = UINT64_MAX, .no_new_privileges = true, .scopes = LANDLOCK_SCOPE_SIGNALS};
    char command[128];
    bool scoped;
    (void)snprintf(command, sizeof(command), "kill -0 %d 2>/dev/null" SAY "sleep 100 & kill $!" SAY,
                   (int)getpid());
    (void)run_shell(command, (struct spawn_options){.sandbox = &sandbox});
    scoped = spawned_state.scopes == LANDLOCK_SCOPE_SIGNALS;
    ck_assert(scoped || landlock_confine(LANDLOCK_SCOPE_SIGNALS) == LANDLOCK_E_UNKNOWN);
    ck_assert_str_eq(output, scoped ? "no\nyes\n" : "yes\nyes\n");
}

TEST(the_user_is_changed_and_the_supervisor_keeps_its_secrets)
{
    const gid_t groups[] = {4242};
    if (!is_root("can change the user"))
        return;
    ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 0), 0);
    (void)run_shell(
        "id -u; id -g; id -G; grep -c NSpid /proc/$$/status",
        (struct spawn_options){
            .set_user = true, .uid = 65534, .gid = 65533, .groups = groups, .n_groups = 1});
    ck_assert_str_eq(output, "65534\n65533\n65533 4242\n1\n");
    ck_assert_int_eq(prctl(PR_GET_DUMPABLE), 0);
    ck_assert_int_eq((int)getuid(), 0);
}

/* A child of ours spawns, tells the pid, and dies: the grandchild must follow. */
static void be_the_supervisor(int tell_fd, bool set_user)
{
    char *const argv[] = {"/bin/sleep", "1000", NULL};
    struct spawn_options options = {.argv = argv,
                                    .environment = environment,
                                    .fds = &(struct spawn_fd){tell_fd, 3},
                                    .n_fds = 1,
                                    .set_user = set_user,
                                    .uid = 65534,
                                    .gid = 65534,
                                    .cgroup_fd = -1};
    struct spawn_result result;
    const char *step;
    _exit(spawn_and_wait(&options, &result, &step) < 0);
}

static void expect_death_with_supervisor(bool set_user)
{
    int fds[2], status;
    char byte;
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0)
        be_the_supervisor(fds[1], set_user);
    close_fd(fds[1]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    /* The end of the pipe comes when the last process that holds it is gone. */
    ck_assert_int_eq(read(fds[0], &byte, 1), 0);
    close_fd(fds[0]);
}

TEST(it_dies_with_the_supervisor)
{
    expect_death_with_supervisor(false);
    if (getuid() == 0)
        expect_death_with_supervisor(true);
}

TEST(too_many_descriptors_are_refused)
{
    struct spawn_fd fds[SPAWN_FDS_MAX + 1] = {0};
    char *const argv[] = {"/bin/true", NULL};
    struct spawn_options options = {.argv = argv,
                                    .environment = environment,
                                    .fds = fds,
                                    .n_fds = SPAWN_FDS_MAX + 1,
                                    .cgroup_fd = -1};
    struct spawn_result result;
    const char *step;
    ck_assert_int_eq(spawn_and_wait(&options, &result, &step), -E2BIG);
}

TEST(a_thousand_spawns_leave_no_descriptor_and_no_zombie)
{
    char *const argv[] = {"/bin/true", NULL};
    struct spawn_options options = {.argv = argv, .environment = environment, .cgroup_fd = -1};
    struct spawn_result result;
    const char *step;
    (void)run_shell("true", (struct spawn_options){0});
    unsigned before = open_descriptors();
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(spawn_and_wait(&options, &result, &step), 0);
        (void)reap_and_close(&result);
    }
    ck_assert_uint_eq(open_descriptors(), before);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG | __WALL), -1);
}

TEST(without_clone3_it_starts_all_the_same_and_reports_errors)
{
    char *const argv[] = {"/nonexistent", NULL};
    struct spawn_options options = {.argv = argv, .environment = environment, .cgroup_fd = -1};
    struct spawn_result result;
    const char *step;
    refuse_call(SYS_clone3, ENOSYS);
    struct spawn_exit how = run_shell("echo hello; exit 3", (struct spawn_options){0});
    ck_assert_str_eq(output, "hello\n");
    ck_assert_int_eq(how.code, 3);
    ck_assert_int_eq(spawn_and_wait(&options, &result, &step), -ENOENT);
    ck_assert_str_eq(step, "exec");
}

TEST(without_clone3_it_joins_its_cgroup_by_itself)
{
    char directory[] = "/tmp/test-spawn-XXXXXX", written[4] = "";
    char *const argv[] = {"/bin/true", NULL};
    struct spawn_result result;
    const char *step;
    ck_assert_ptr_nonnull(mkdtemp(directory));
    int directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int procs = openat(directory_fd, "cgroup.procs", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    ck_assert_int_ge(procs, 0);
    refuse_call(SYS_clone3, ENOSYS);
    struct spawn_options options = {
        .argv = argv, .environment = environment, .cgroup_fd = directory_fd};
    ck_assert_int_eq(spawn_and_wait(&options, &result, &step), 0);
    (void)reap_and_close(&result);
    ck_assert_int_eq(read(procs, written, 3), 1);
    ck_assert_str_eq(written, "0");
    ck_assert_int_eq(unlinkat(directory_fd, "cgroup.procs", 0), 0);
    ck_assert_int_eq(rmdir(directory), 0);
}

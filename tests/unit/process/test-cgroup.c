/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/loop.h"
#include "supervisor/process/cgroup.h"
#include "tests/unit/fake-keeper.h"
#include "tests/unit/suite.h"
#include <ftw.h>
#include <sched.h>

/*
 * Two kinds of trees: plain directories with the files of a cgroup, to see what is written; and,
 * where this process may make one, a real cgroup.
 */
static char root[64];
static struct cgroup_tree tree = CGROUP_TREE_NULL;
static struct cgroup cgroup = CGROUP_NULL;

static char group_name[] = "digest";
static struct config_group group = {
    .name = group_name,
    .memory_max = CONFIG_UNSET,
    .memory_high = CONFIG_UNSET,
    .memory_swap_max = CONFIG_UNSET,
    .memory_reclaim = CONFIG_UNSET,
    .io_weight = CONFIG_UNSET,
    .cpu_weight = CONFIG_UNSET,
    .cpu_quota_percent = CONFIG_UNSET,
    .tasks_max = CONFIG_UNSET,
};

static void put(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close_fd(fd);
}

static const char *get(const char *name)
{
    static char text[256];
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    close_fd(fd);
    return text;
}

static void make(const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    ck_assert_int_eq(mkdir(path, 0755), 0);
}

static void set_up(void)
{
    strcpy(root, "/tmp/test-cgroup-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
    put("cgroup.type", "domain\n");
    put("cgroup.procs", "");
    put("cgroup.controllers", "cpuset cpu io memory pids\n");
    put("cgroup.subtree_control", "");
    make("supervisor");
    put("supervisor/cgroup.procs", "");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return remove(path);
}

static void tear_down(void)
{
    cgroup_deinit(&cgroup);
    cgroup_tree_deinit(&tree);
    cgroup_tree_deinit(&tree);
    (void)nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void expect_unavailable(const char *why)
{
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), CGROUP_E_UNAVAILABLE);
    ck_assert_int_eq(tree.fd, -1);
    ck_assert_ptr_nonnull(cgroup_tree_missing(&tree));
    ck_assert_msg(strstr(cgroup_tree_missing(&tree), why), "%s", cgroup_tree_missing(&tree));
    ck_assert_ptr_null(strchr(cgroup_tree_missing(&tree), '\n'));
}

TEST(the_supervisor_moves_into_its_leaf_and_hands_controllers_down)
{
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_str_eq(get("supervisor/cgroup.procs"), "0");
    ck_assert_ptr_null(cgroup_tree_missing(&tree));
    ck_assert_str_eq(tree.text, "one per worker");
    ck_assert_uint_eq(tree.controllers,
                      CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU | CGROUP_IO | CGROUP_CPUSET);
}

TEST(controllers_that_are_not_there_are_named)
{
    put("cgroup.controllers", "pids misc\n");
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_uint_eq(tree.controllers, CGROUP_PIDS);
    ck_assert_ptr_nonnull(
        strstr(cgroup_tree_missing(&tree), "; no memory, cpu, io, cpuset controllers here"));
    ck_assert_str_eq(get("cgroup.subtree_control"), "+pids");
}

TEST(the_root_of_the_machine_is_not_ours)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/cgroup.type", root);
    ck_assert_int_eq(unlink(path), 0);
    expect_unavailable("root cgroup");
}

TEST(a_cgroup_with_other_processes_in_it_is_not_ours)
{
    char own[32];
    put("cgroup.procs", "1\n");
    expect_unavailable("not delegated");
    ck_assert_str_eq(get("supervisor/cgroup.procs"), "");
    (void)snprintf(own, sizeof(own), "%d\n", getpid());
    put("cgroup.procs", own);
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
}

TEST(a_directory_that_is_not_there_is_unavailable)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/nothing", root);
    ck_assert_int_eq(cgroup_tree_init(&tree, path, 0), CGROUP_E_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(cgroup_tree_missing(&tree), "No such file"));
}

TEST(without_delegation_every_function_says_so)
{
    put("cgroup.procs", "1\n");
    expect_unavailable("Delegate=yes");
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/0"), CGROUP_E_UNAVAILABLE);
    ck_assert_int_eq(cgroup.fd, -1);
    ck_assert_int_eq(cgroup_set_limits(&cgroup, &tree, &group), CGROUP_E_UNAVAILABLE);
    ck_assert_int_eq(cgroup_kill(&cgroup), CGROUP_E_UNAVAILABLE);
    cgroup_leave(&cgroup, &tree);
}

TEST(limits_that_no_slot_will_have_are_named)
{
    struct cgroup_tree some = {.fd = -1, .controllers = CGROUP_CPU | CGROUP_PIDS};
    struct config_group limited = group;
    char text[CGROUP_UNMET_SIZE];

    ck_assert_uint_eq(cgroup_unmet(0, &limited, text, sizeof(text)), 0);
    ck_assert_str_eq(text, "");
    limited.memory_max = 4096;
    limited.cpu_weight = 50;
    limited.tasks_max = 7;
    ck_assert_uint_eq(cgroup_unmet(0, &limited, text, sizeof(text)), 3);
    ck_assert_str_eq(text, "MemoryMax=, CPUWeight=, TasksMax=");
    ck_assert_uint_eq(cgroup_unmet(some.controllers, &limited, text, sizeof(text)), 1);
    ck_assert_str_eq(text, "MemoryMax=");
    ck_assert_uint_eq(cgroup_unmet(0, &limited, text, 8), 3);
    ck_assert_str_eq(text, "MemoryM");
    limited.memory_high = limited.memory_swap_max = limited.io_weight = 1;
    limited.memory_reclaim = 1;
    limited.cpu_quota_percent = 50;
    limited.allowed_cpus = (char[]){"0"};
    ck_assert_uint_eq(cgroup_unmet(0, &limited, text, sizeof(text)), CGROUP_LIMITS);
    ck_assert_str_eq(text, "MemoryMax=, MemoryHigh=, MemorySwapMax=, MemoryReclaimSec=, "
                           "CPUWeight=, CPUQuota=, AllowedCPUs=, IOWeight=, TasksMax=");
    ck_assert_uint_eq(cgroup_unmet(CGROUP_MEMORY | CGROUP_CPU | CGROUP_PIDS | CGROUP_IO, &limited,
                                   text, sizeof(text)),
                      1);
    ck_assert_str_eq(text, "AllowedCPUs=");
}

/* As a supervisor before would have left it, with the files that the kernel makes in a new one. */
static void make_slot(void)
{
    static const char *const files[] = {
        "memory.max", "memory.high", "memory.swap.max", "pids.max",    "cpu.max",
        "cpu.weight", "cpuset.cpus", "io.weight",       "cgroup.kill", "cgroup.procs"};
    char name[64];
    make("digest:3");
    for (size_t i = 0; i < ELEMENTS(files); i++) {
        (void)snprintf(name, sizeof(name), "digest:3/%s", files[i]);
        put(name, "");
    }
}

TEST(limits_are_written_as_the_kernel_reads_them)
{
    make_slot();
    group.memory_max = 64 << 20;
    group.memory_high = 48 << 20;
    group.cpu_weight = 50;
    group.cpu_quota_percent = 150;
    group.tasks_max = 7;
    group.memory_swap_max = 0;
    group.allowed_cpus = (char[]){"0-1,3"};
    group.io_weight = 70;
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/3"), 0);
    ck_assert_str_eq(get("digest:3/memory.swap.max"), "0");
    ck_assert_str_eq(get("digest:3/cpuset.cpus"), "0-1,3");
    ck_assert_str_eq(get("digest:3/io.weight"), "70");
    ck_assert_str_eq(get("digest:3/memory.max"), "67108864");
    ck_assert_str_eq(get("digest:3/memory.high"), "50331648");
    ck_assert_str_eq(get("digest:3/cpu.weight"), "50");
    ck_assert_str_eq(get("digest:3/cpu.max"), "150000 100000");
    ck_assert_str_eq(get("digest:3/pids.max"), "7");
}

TEST(all_memory_is_taken_back_where_the_controller_is_there)
{
    make_slot();
    ck_assert_int_eq(cgroup_reclaim(&cgroup), CGROUP_E_UNAVAILABLE);
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/3"), 0);
    ck_assert_int_eq(cgroup_reclaim(&cgroup), CGROUP_E_UNAVAILABLE);
    put("digest:3/memory.current", "123456\n");
    ck_assert_int_eq(cgroup_reclaim(&cgroup), CGROUP_E_UNAVAILABLE);
    put("digest:3/memory.reclaim", "");
    ck_assert_int_eq(cgroup_reclaim(&cgroup), 0);
    ck_assert_str_eq(get("digest:3/memory.reclaim"), "123456\n");
}

TEST(limits_that_are_unset_are_taken_back)
{
    make_slot();
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/3"), 0);
    ck_assert_str_eq(get("digest:3/memory.max"), "max");
    ck_assert_str_eq(get("digest:3/cpu.weight"), "100");
    ck_assert_str_eq(get("digest:3/cpu.max"), "max");
    ck_assert_str_eq(get("digest:3/memory.swap.max"), "max");
    ck_assert_str_eq(get("digest:3/cpuset.cpus"), "\n");
    ck_assert_str_eq(get("digest:3/io.weight"), "100");
}

TEST(a_weight_for_input_and_output_goes_to_the_scheduler_that_is_there)
{
    char path[128];
    make_slot();
    put("digest:3/io.bfq.weight", "");
    group.io_weight = 10000;
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/3"), 0);
    ck_assert_str_eq(get("digest:3/io.weight"), "10000");
    ck_assert_str_eq(get("digest:3/io.bfq.weight"), "1000");
    (void)snprintf(path, sizeof(path), "%s/digest:3/io.weight", root);
    ck_assert_int_eq(unlink(path), 0);
    put("digest:3/io.bfq.weight", "");
    group.io_weight = 50;
    ck_assert_int_eq(cgroup_set_limits(&cgroup, &tree, &group), 0);
    ck_assert_str_eq(get("digest:3/io.bfq.weight"), "50");
    (void)snprintf(path, sizeof(path), "%s/digest:3/io.bfq.weight", root);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(cgroup_set_limits(&cgroup, &tree, &group), -ENOENT);
    group.io_weight = CONFIG_UNSET;
    ck_assert_int_eq(cgroup_set_limits(&cgroup, &tree, &group), 0);
}

TEST(a_limit_that_cannot_be_set_is_an_error_only_if_it_was_asked_for)
{
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/4"), 0); /* no files there */
    cgroup_deinit(&cgroup);
    group.tasks_max = 7;
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/4"), -ENOENT);
    ck_assert_int_eq(cgroup.fd, -1);
}

TEST(what_lives_in_a_slot_taken_over_is_killed)
{
    make_slot();
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/3"), 0);
    ck_assert_str_eq(get("digest:3/cgroup.kill"), "1");
}

TEST(an_adopted_slot_keeps_its_processes_and_a_sweep_kills_the_others)
{
    make_slot();
    make("digest:4");
    put("digest:4/cgroup.kill", "");
    make("mail:acme:0"); /* empty */
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(cgroup_adopt(&cgroup, &tree, "digest/3"), 0);
    cgroup_tree_sweep(&tree);
    ck_assert_str_eq(get("digest:3/cgroup.kill"), "");
    ck_assert_str_eq(get("digest:4/cgroup.kill"), "1");
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/mail:acme:0", root);
    ck_assert_int_lt(access(path, F_OK), 0);
    ck_assert_int_eq(cgroup_kill(&cgroup), 0);
    ck_assert_str_eq(get("digest:3/cgroup.kill"), "1");
}

TEST(a_slot_whose_cgroup_is_gone_cannot_be_adopted)
{
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(cgroup_adopt(&cgroup, &tree, "digest/3"), CGROUP_E_UNAVAILABLE);
    ck_assert_int_eq(cgroup.fd, -1);
    ck_assert_ptr_null(cgroup.name);
}

TEST(empty_leftovers_go_with_the_tree)
{
    char path[128];
    make("other:1");
    make("not-a-slot");
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    cgroup_tree_deinit(&tree);
    (void)snprintf(path, sizeof(path), "%s/other:1", root);
    ck_assert_int_lt(access(path, F_OK), 0);
    (void)snprintf(path, sizeof(path), "%s/not-a-slot", root);
    ck_assert_int_eq(access(path, F_OK), 0);
}

static bool is_there(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    return access(path, F_OK) == 0;
}

/* Where cgroup v2 is mounted and ours to change; empty where that is not to be had. */
static char mount[64];

/* In the process that runs the tests, so that it is cleared away even if the test fails. */
static void make_real_root(void)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char path[128];
    for (size_t i = 0; i < ELEMENTS(mounts) && mount[0] == '\0'; i++) {
        (void)snprintf(path, sizeof(path), "%s/cgroup.subtree_control", mounts[i]);
        (void)snprintf(root, sizeof(root), "%s/troupe-test-%d", mounts[i], getpid());
        if (access(path, W_OK) == 0 && mkdir(root, 0755) == 0)
            strcpy(mount, mounts[i]);
    }
}

static int remove_directory(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    return type == FTW_DP ? rmdir(path) : 0;
}

static void remove_real_root(void)
{
    if (mount[0] == '\0')
        return;
    put("cgroup.kill", "1");
    for (int i = 0; i < 100000 && strstr(get("cgroup.events"), "populated 1"); i++)
        sched_yield();
    (void)nftw(root, remove_directory, 8, FTW_DEPTH | FTW_PHYS);
    mount[0] = '\0';
}

/* The process of the test moves into the cgroup, and must not be the one that kills it. */
#define REAL .setup = make_real_root, .teardown = remove_real_root, .unchecked = true

TEST(a_worker_born_in_a_real_cgroup_is_killed_with_its_children, REAL)
{
    /* The grandchild is in a session of its own, where no process group would reach it. */
    char *const argv[] = {"/bin/sh", "-c", "setsid sleep 1000 & echo ready; wait", NULL};
    char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    struct spawn_result result;
    const char *step = "";
    int fds[2];
    if (mount[0] == '\0') {
        printf("skipped: no writable cgroup v2\n");
        return;
    }
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/0"), 0);
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    struct spawn_options options = {.argv = argv,
                                    .environment = environment,
                                    .fds = &(struct spawn_fd){fds[1], 1},
                                    .n_fds = 1,
                                    .cgroup_fd = cgroup.fd};
    int r = spawn_and_wait(&options, &result, &step);
    ck_assert_msg(r == 0, "%s: %s", step, strerror(-r));
    close_fd(fds[1]);
    char line[6];
    ck_assert_int_eq(read(fds[0], line, sizeof(line)), 6);
    ck_assert_int_eq(atoi(get("digest:0/cgroup.procs")), result.pid);
    ck_assert_int_eq(cgroup_kill(&cgroup), 0);
    struct spawn_exit how = reap_and_close(&result);
    ck_assert(how.signalled && how.code == SIGKILL);
    ck_assert_int_eq(read(fds[0], line, 1), 0); /* the grandchild held the pipe as well */
}

/* Its exit status, or minus the signal that ended it. */
static int run_true(void)
{
    char *const argv[] = {"/bin/true", NULL}, *const environment[] = {NULL};
    struct spawn_result result;
    const char *step = "";
    struct spawn_options options = {
        .argv = argv, .environment = environment, .cgroup_fd = cgroup.fd};
    int r = spawn_and_wait(&options, &result, &step);
    ck_assert_msg(r == 0, "%s: %s", step, strerror(-r));
    struct spawn_exit how = reap_and_close(&result);
    return how.signalled ? -how.code : how.code;
}

TEST(a_worker_lives_in_a_slot_in_which_another_was_killed, REAL)
{
    if (mount[0] == '\0') {
        printf("skipped: no writable cgroup v2\n");
        return;
    }
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/0"), 0);
    ck_assert_int_eq(cgroup_kill(&cgroup), 0);
    cgroup_deinit(&cgroup); /* as it is left when something in it is still dying */
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/0"), 0);
    ck_assert_int_eq(run_true(), 0);
    cgroup_leave(&cgroup, &tree);
    ck_assert(!is_there("digest:0"));
}

static struct spawn_result start_sleep(void)
{
    char *const argv[] = {"/bin/sleep", "1000", NULL}, *const environment[] = {NULL};
    struct spawn_result result;
    const char *step;
    struct spawn_options options = {
        .argv = argv, .environment = environment, .cgroup_fd = cgroup.fd};
    ck_assert_int_eq(spawn_and_wait(&options, &result, &step), 0);
    return result;
}

TEST(a_slot_with_something_alive_in_it_is_busy_until_that_is_dead, REAL)
{
    if (mount[0] == '\0') {
        printf("skipped: no writable cgroup v2\n");
        return;
    }
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/0"), 0);
    struct spawn_result result = start_sleep();
    cgroup_deinit(&cgroup);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/0"), -EBUSY);
    struct spawn_exit how = reap_and_close(&result);
    ck_assert(how.signalled && how.code == SIGKILL);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/0"), 0);
    ck_assert_int_eq(run_true(), 0);
    cgroup_leave(&cgroup, &tree);
    ck_assert(!is_there("digest:0"));
}

/* Looks at the directory in each turn. */
static void on_turn(struct timer *timer, usec_t now)
{
    if (!is_there("digest:0"))
        loop_stop(tree.loop);
    else
        timer_arm(loop_timers(tree.loop), timer, now + USEC_PER_MSEC);
}

TEST(a_slot_that_was_left_goes_when_the_last_process_in_it_has_ended, REAL)
{
    const struct loop_options options = {.kind = LOOP_ANY};
    const char *reason;
    struct timer timer;
    if (mount[0] == '\0') {
        printf("skipped: no writable cgroup v2\n");
        return;
    }
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(loop_new(&tree.loop, &options, &reason), 0);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/0"), 0);
    struct spawn_result result = start_sleep();
    cgroup_leave(&cgroup, &tree);
    ck_assert(is_there("digest:0"));
    ck_assert_int_eq(kill(result.pid, SIGKILL), 0);
    (void)reap_and_close(&result);
    timer_init(&timer, on_turn);
    timer_arm(loop_timers(tree.loop), &timer, 0);
    ck_assert_int_eq(loop_run(tree.loop), 0);
    ck_assert(list_empty(&tree.leftovers));
    loop_free(tree.loop);
}

TEST(a_slot_that_was_left_stays_if_it_is_used_again, REAL)
{
    const struct loop_options options = {.kind = LOOP_ANY};
    const char *reason;
    if (mount[0] == '\0') {
        printf("skipped: no writable cgroup v2\n");
        return;
    }
    ck_assert_int_eq(cgroup_tree_init(&tree, root, 0), 0);
    ck_assert_int_eq(loop_new(&tree.loop, &options, &reason), 0);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/0"), 0);
    struct spawn_result result = start_sleep();
    cgroup_leave(&cgroup, &tree);
    ck_assert_int_eq(kill(result.pid, SIGKILL), 0);
    (void)reap_and_close(&result);
    ck_assert_int_eq(cgroup_init(&cgroup, &tree, &group, "digest/0"), 0);
    ck_assert(list_empty(&tree.leftovers));
    ck_assert_int_eq(run_true(), 0);
    cgroup_leave(&cgroup, &tree);
    loop_free(tree.loop);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};

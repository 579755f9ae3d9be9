/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/children.h"
#include "tests/unit/fake-keeper.h"
#include "tests/unit/suite.h"

static struct starting starting;
static struct message request;
static struct spawn_options options;

static void setup(void)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    starting_init(&starting);
}

static void teardown(void)
{
    close_fd(starting.read_fd);
    close_fd(starting.write_fd);
}

/* A request with a descriptor, which it returns, of a process with this pid. */
static int add(pid_t pid)
{
    const int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

    request.n_fds = 1;
    request.fds[0] = fd;
    starting_share(&starting, &request, STARTING_SHARE_MIN, &options);
    ck_assert(options.share_table);
    starting_add(&starting, &options, pid, &request);
    ck_assert_uint_eq(request.n_fds, 0);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

TEST(descriptors_are_closed_once_the_process_has_copied_them)
{
    const int first = add(10), second = add(11);

    starting_run(&starting);
    ck_assert(is_open(first) && is_open(second));
    ck_assert_int_eq(write(options.copied_fd, &options.copied_byte, 1), 1);
    starting_run(&starting);
    ck_assert(is_open(first) && !is_open(second));
    starting_remove(&starting, 10);
    ck_assert(!is_open(first));
}

TEST(what_an_ended_process_has_written_does_not_count_for_its_successor)
{
    (void)add(10);
    ck_assert_int_eq(write(options.copied_fd, &options.copied_byte, 1), 1);
    starting_remove(&starting, 10);
    int fd = add(11);
    starting_run(&starting);
    ck_assert(is_open(fd));
    starting_remove(&starting, 11);
}

TEST(without_room_or_with_a_high_descriptor_nothing_is_shared)
{
    for (int i = 0; i < STARTING_MAX; i++)
        (void)add(100 + i);
    request.n_fds = 0;
    starting_share(&starting, &request, STARTING_SHARE_MIN, &options);
    ck_assert(!options.share_table);
    for (int i = 0; i < STARTING_MAX; i++)
        starting_remove(&starting, 100 + i);
    request.n_fds = 1;
    request.fds[0] = SPAWN_COPIED;
    starting_share(&starting, &request, STARTING_SHARE_MIN, &options);
    ck_assert(!options.share_table);
}

TEST(a_small_table_is_copied)
{
    request.n_fds = 0;
    starting_share(&starting, &request, STARTING_SHARE_MIN - 1, &options);
    ck_assert(!options.share_table);
    starting_share(&starting, &request, STARTING_SHARE_MIN, &options);
    ck_assert(options.share_table);
}

TEST(a_process_that_shares_the_table_at_first_changes_nothing_in_it)
{
    char *const argv[] = {"/bin/sh", "-c", "exec 4>&-; echo $1 >&3; ls /proc/self/fd >&3", "sh",
                          NULL};
    char *const environment[] = {"PATH=/bin:/usr/bin", NULL};
    const int high = fcntl(STDERR_FILENO, F_DUPFD, SPAWN_COPIED);
    char output[256] = "";
    struct spawn_result result;
    int fds[2];

    ck_assert_int_ge(high, SPAWN_COPIED);
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    options = (struct spawn_options){
        .argv = argv,
        .environment = environment,
        .fds = &(struct spawn_fd){.fd = fds[1], .number = 3},
        .n_fds = 1,
        .report_fd = STDERR_FILENO,
        .cgroup_fd = -1,
        .share_table = true,
        .copied_fd = starting.write_fd,
    };
    ck_assert_int_eq(spawn(&options, &result), 0);
    ck_assert_int_eq(reap_and_close(&result).code, 0);
    close_fd(fds[1]);
    ck_assert_int_gt(read(fds[0], output, sizeof(output) - 1), 0);
    ck_assert_ptr_null(strstr(output, "1024"));
    ck_assert(is_open(high) && is_open(fds[0]) && is_open(starting.read_fd));
    close_fd(fds[0]);
    close_fd(high);
}

const struct suite suite = {.name = "starting", .setup = setup, .teardown = teardown};

/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-network.h"
#include "tests/unit/suite.h"

static struct sandbox_network network;

static void set_up(void)
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, network.storage), 0);
}

static void tear_down(void)
{
    close_fd(network.storage[0]);
    close_fd(network.storage[1]);
}

/* Returns the number of the network that another process has joined, or 0 without privileges. */
static ino_t joined(void)
{
    struct stat status = {0};
    int pipe_fds[2], how;

    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        const int r = sandbox_network_join(&network);

        if (r == 0 && stat("/proc/self/ns/net", &status) == 0)
            (void)!write(pipe_fds[1], &status.st_ino, sizeof(status.st_ino));
        _exit(r == 0 || r == -EPERM ? 0 : 1);
    }
    close_fd(pipe_fds[1]);
    (void)!read(pipe_fds[0], &status.st_ino, sizeof(status.st_ino));
    close_fd(pipe_fds[0]);
    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    ck_assert_int_eq(how, 0);
    return status.st_ino;
}

TEST(all_processes_join_the_same_network)
{
    struct stat own;
    const ino_t first = joined();

    if (first == 0)
        return;
    ck_assert_int_eq(stat("/proc/self/ns/net", &own), 0);
    ck_assert_uint_ne(first, own.st_ino);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(joined(), first);
}

/* So whoever is killed at any instruction can neither keep others out nor take it away. */
TEST(a_network_is_joined_without_a_lock_and_stays_in_the_storage)
{
    struct flock lock = {.l_type = F_WRLCK};
    const ino_t first = joined();

    if (first == 0)
        return;
    ck_assert_int_eq(fcntl(network.storage[0], F_SETLK, &lock), 0);
    ck_assert_uint_eq(joined(), first);
    ck_assert_uint_eq(joined(), first);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};

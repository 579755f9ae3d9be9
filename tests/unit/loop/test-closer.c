/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/closer.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <poll.h>
#include <sys/mman.h>

#define PAGE 4096

static void wait_until_closed(int fd)
{
    while (fcntl(fd, F_GETFD) >= 0)
        (void)poll(NULL, 0, 1);
}

TEST(the_thread_closes_soon)
{
    int fds[8];

    ck_assert_int_eq(closer_start(), 0);
    ck_assert_int_eq(closer_start(), 0);
    for (int i = 0; i < 8; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < 8; i++)
        closer_close(fds[i]);
    for (int i = 0; i < 8; i++)
        wait_until_closed(fds[i]);
}

TEST(before_the_thread_runs_it_closes_at_once)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    errno = EPERM;
    closer_close(fd);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
    closer_close(-1);
}

static struct loop *loop;
static int closed_fd;

static void stop_when_closed(struct loop_deferred *deferred)
{
    if (fcntl(closed_fd, F_GETFD) < 0)
        loop_stop(loop);
    else
        loop_defer(loop, deferred);
}

static void on_never(void *userdata, uint32_t events)
{
    ck_abort();
}

TEST(the_loop_shuts_down_at_once_and_closes_when_the_ring_has_let_go)
{
    struct loop_watch watch = LOOP_WATCH_NULL;
    struct loop_deferred deferred;
    int sockets[2];
    char byte;

    loop = new_loop();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &watch, sockets[0], POLLIN, on_never, NULL), 0);
    closed_fd = sockets[0];
    loop_unwatch(loop, &watch);
    loop_close(loop, sockets[0]);
    ck_assert_int_ge(fcntl(sockets[0], F_GETFD), 0);
    ck_assert_int_eq(recv(sockets[1], &byte, 1, MSG_DONTWAIT), 0);
    loop_deferred_init(&deferred, stop_when_closed);
    loop_defer(loop, &deferred);
    ck_assert_int_eq(loop_run(loop), 0);
    closed_fd = sockets[1];
    loop_close(loop, sockets[1]);
    loop_free(loop);
    ck_assert_int_lt(fcntl(sockets[1], F_GETFD), 0);
}

static bool is_mapped(void *start)
{
    return msync(start, PAGE, MS_ASYNC) == 0;
}

static void *page;

static void stop_when_unmapped(struct loop_deferred *deferred)
{
    if (!is_mapped(page))
        loop_stop(loop);
    else
        loop_defer(loop, deferred);
}

static void *map_page(void)
{
    void *start = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(start, MAP_FAILED);
    return start;
}

TEST(the_loop_unmaps_after_more_urgent_work)
{
    struct loop_deferred deferred;

    page = map_page();
    loop = new_loop();
    usec_t began = loop_now(loop);
    loop_unmap(loop, NULL, PAGE);
    loop_unmap(loop, page, PAGE);
    loop_deferred_init(&deferred, stop_when_unmapped);
    loop_defer(loop, &deferred);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_ge(clock_now() - began, USEC_PER_MSEC);
    page = map_page();
    loop_unmap(loop, page, PAGE);
    ck_assert(is_mapped(page));
    loop_free(loop);
    ck_assert(!is_mapped(page));
    ck_assert_int_ge(fcntl(0, F_GETFD), 0); /* NULL is no descriptor */
}

static void on_hangup(void *userdata, uint32_t events)
{
    loop_stop(loop);
}

TEST(the_loop_closes_after_more_urgent_work_and_wakes_up_for_it)
{
    struct loop_watch watch = LOOP_WATCH_NULL;
    int fds[2];

    loop = new_loop();
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &watch, fds[0], POLLIN, on_hangup, NULL), 0);
    usec_t began = loop_now(loop);
    loop_close(loop, fds[1]);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_ge(clock_now() - began, USEC_PER_MSEC);
    loop_unwatch(loop, &watch);
    close_fd(fds[0]);
    loop_free(loop);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/loop.h"
#include "tests/unit/fixture.h"
#include "tests/unit/suite.h"
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static struct loop *loop;
static struct loop_watch watch = LOOP_WATCH_NULL, other = LOOP_WATCH_NULL;
static int event_fd = -1;
static unsigned n_calls;
static char trace[64];

static void set_up_with(const struct loop_options *options)
{
    const char *reason;
    int r = loop_new(&loop, options, &reason);
    if (r == LOOP_E_UNAVAILABLE) {
        printf("skipped: %s\n", reason);
        exit(0);
    }
    ck_assert_msg(r == 0, "%d %s", r, reason);
    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ck_assert_int_ge(event_fd, 0);
}

static void set_up(void)
{
    set_up_with(&(struct loop_options){.kind = LOOP_IO_URING});
}

static void set_up_epoll(void)
{
    set_up_with(&(struct loop_options){.kind = LOOP_EPOLL});
}

static void tear_down(void)
{
    loop_free(loop);
    close_fd(event_fd);
}

static void need_futex(void)
{
    if (loop_wake_backend(loop) == WAKE_FUTEX)
        return;
    printf("skipped: this kernel has no futex operations in io_uring\n");
    tear_down();
    _exit(0);
}

static void note(char what)
{
    size_t n = strlen(trace);
    ck_assert_uint_lt(n + 1, sizeof(trace));
    trace[n] = what;
}

static void on_count(void *userdata, uint32_t events)
{
    unsigned *calls = userdata;
    if (++*calls == 3)
        loop_stop(loop);
}

static void on_stop(void *userdata, uint32_t events)
{
    uint32_t *ret = userdata;
    *ret = events;
    n_calls++;
    loop_stop(loop);
}

static void on_never(void *userdata, uint32_t events)
{
    ck_abort_msg("a watch that was over fired with %#x", events);
}

static void on_timer_stop(struct timer *timer, usec_t now)
{
    ck_assert_uint_ge(now, timer_at(timer));
    loop_stop(loop);
}

static struct timer stop_timer;

static void stop_after(usec_t delay)
{
    timer_init(&stop_timer, on_timer_stop);
    timer_arm(loop_timers(loop), &stop_timer, clock_now() + delay);
}

static void run(void)
{
    ck_assert_int_eq(loop_run(loop), 0);
}

static void run_for(usec_t duration)
{
    stop_after(duration);
    run();
}

static void ring_bell(void)
{
    wake_eventfd_wake(event_fd);
}

TEST(a_ready_descriptor_is_reported_every_turn_until_it_is_drained)
{
    ring_bell();
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_count, &n_calls), 0);
    run();
    ck_assert_uint_eq(n_calls, 3);
}

TEST(the_ready_events_are_told)
{
    uint32_t events = 0;
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN | POLLOUT, on_stop, &events), 0);
    run();
    ck_assert_uint_eq(events, POLLOUT);
}

TEST(a_closed_descriptor_comes_as_pollnval)
{
    uint32_t events = 0;
    ck_assert_int_eq(loop_watch_fd(loop, &watch, 1023, POLLIN, on_stop, &events), 0);
    run();
    ck_assert_uint_eq(events, POLLNVAL);
}

TEST(a_peer_that_hangs_up_is_reported_whatever_was_asked_for)
{
    uint32_t events = 0;
    int fds[2];
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    close_fd(fds[0]);
    ck_assert_int_eq(loop_watch_fd(loop, &watch, fds[1], POLLIN, on_stop, &events), 0);
    run();
    ck_assert_uint_eq(events & POLLERR, POLLERR);
    close_fd(fds[1]);
}

static void on_unwatch_both(void *userdata, uint32_t events)
{
    n_calls++;
    loop_unwatch(loop, &watch);
    loop_unwatch(loop, &other);
    loop_stop(loop);
}

TEST(a_callback_may_end_its_own_watch_and_others_that_are_ready_too)
{
    ring_bell();
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_unwatch_both, NULL), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &other, event_fd, POLLIN, on_unwatch_both, NULL), 0);
    run();
    ck_assert_uint_eq(n_calls, 1);
    ck_assert_uint_eq(watch.id, 0);
    ck_assert_uint_eq(other.id, 0);
    run_for(1000);
    ck_assert_uint_eq(n_calls, 1);
}

TEST(nothing_of_an_ended_watch_reaches_the_next_one_in_its_place)
{
    uint32_t events = 0;
    int silent = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_never, NULL), 0);
    stop_after(1000);
    run(); /* armed in the kernel now */
    ring_bell();
    loop_unwatch(loop, &watch);
    ck_assert_int_eq(loop_watch_fd(loop, &watch, silent, POLLIN, on_never, NULL), 0);
    loop_unwatch(loop, &watch);
    ck_assert_int_eq(loop_watch_fd(loop, &other, silent, POLLIN, on_never, NULL), 0);
    run_for(1000);
    loop_unwatch(loop, &other);
    loop_unwatch(loop, &other); /* not armed: harmless */
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_stop, &events), 0);
    run();
    ck_assert_uint_eq(events, POLLIN);
    close_fd(silent);
}

TEST(a_paused_watch_reports_nothing_until_it_is_resumed)
{
    uint32_t events = 0;
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_stop, &events), 0);
    stop_after(1000);
    run(); /* armed while nothing is ready */
    ck_assert_int_eq(loop_watch_events(loop, &watch, 0), 0);
    ring_bell();
    run_for(2000);
    ck_assert_uint_eq(n_calls, 0);
    ck_assert_int_eq(loop_watch_events(loop, &watch, POLLIN), 0);
    run();
    ck_assert_uint_eq(events, POLLIN);
}

TEST(a_paused_watch_reports_no_errors_either)
{
    uint32_t events = 0;
    int fds[2];
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &watch, fds[0], POLLIN, on_stop, &events), 0);
    run_for(1000);
    ck_assert_int_eq(loop_watch_events(loop, &watch, 0), 0);
    close_fd(fds[1]);
    run_for(1000);
    ck_assert_uint_eq(n_calls, 0);
    ck_assert_int_eq(loop_watch_events(loop, &watch, POLLIN), 0);
    run();
    ck_assert_uint_eq(events & POLLHUP, POLLHUP);
    close_fd(fds[0]);
}

TEST(events_can_be_added_to_a_watch_that_is_armed)
{
    uint32_t events = 0;
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_stop, &events), 0);
    run_for(1000);
    ck_assert_uint_eq(n_calls, 0);
    ck_assert_int_eq(loop_watch_events(loop, &watch, POLLIN | POLLOUT), 0);
    run();
    ck_assert_uint_eq(events, POLLOUT);
    ck_assert_int_eq(loop_watch_events(loop, &watch, POLLIN), 0);
    run_for(1000);
    ck_assert_uint_eq(n_calls, 1);
}

static void on_read_and_count(void *userdata, uint32_t events)
{
    char byte;
    ck_assert_int_eq(read(*(int *)userdata, &byte, 1), 1);
    if (++n_calls == 200)
        loop_stop(loop);
}

TEST(more_watches_than_submissions_fit_are_all_served, .bare = true)
{
    struct loop_watch watches[200] = {0};
    int fds[200][2];
    set_up_with(&(struct loop_options){.kind = LOOP_IO_URING, .entries = 8});
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(pipe2(fds[i], O_CLOEXEC), 0);
        ck_assert_int_eq(write(fds[i][1], "x", 1), 1);
        ck_assert_int_eq(
            loop_watch_fd(loop, &watches[i], fds[i][0], POLLIN, on_read_and_count, &fds[i][0]), 0);
    }
    run();
    ck_assert_uint_eq(n_calls, 200);
    for (int i = 0; i < 200; i++) {
        loop_unwatch(loop, &watches[i]);
        close_fd(fds[i][0]);
        close_fd(fds[i][1]);
    }
    run_for(1000);
    tear_down();
}

TEST(watching_costs_no_allocation_once_warm)
{
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_never, NULL), 0);
        loop_unwatch(loop, &watch);
    }
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 100000; i++) {
        ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_never, NULL), 0);
        loop_unwatch(loop, &watch);
    }
    ck_assert_uint_eq(mallinfo2().uordblks, before);
}

TEST(an_eventfd_is_read_by_the_kernel_each_time_it_rings)
{
    uint32_t events = 0;
    uint64_t value;
    int blocking = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_eq(loop_watch_eventfd(loop, &watch, blocking, on_stop, &events), 0);
    for (unsigned i = 1; i <= 3; i++) {
        wake_eventfd_wake(blocking);
        run();
        ck_assert_uint_eq(events, POLLIN);
        ck_assert_uint_eq(n_calls, i);
    }
    run_for(1000);
    ck_assert_uint_eq(n_calls, 3);
    loop_unwatch(loop, &watch);
    run_for(1000);
    wake_eventfd_wake(blocking);
    ck_assert_int_eq(read(blocking, &value, sizeof(value)), sizeof(value)); /* left to us */
    close_fd(blocking);
}

TEST(a_stranger_who_drains_the_eventfd_first_blocks_nobody)
{
    uint64_t value;
    int blocking = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_eq(loop_watch_eventfd(loop, &watch, blocking, on_never, NULL), 0);
    run_for(1000);
    wake_eventfd_wake(blocking);
    ck_assert_int_eq(read(blocking, &value, sizeof(value)), sizeof(value));
    run_for(1000);
    close_fd(blocking);
}

TEST(an_eventfd_that_cannot_be_read_is_an_error)
{
    uint32_t events = 0;
    ck_assert_int_eq(loop_watch_eventfd(loop, &watch, 1023, on_stop, &events), 0);
    run();
    ck_assert_uint_eq(events, POLLERR);
}

static _Atomic uint32_t *new_word(void)
{
    void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    return map;
}

static void on_word(void *userdata, uint32_t events)
{
    ck_assert_uint_eq(events, 0);
    ck_assert_uint_eq(watch.id, 0);
    ++*(unsigned *)userdata;
    loop_stop(loop);
}

TEST(a_word_that_differs_already_fires_once)
{
    need_futex();
    _Atomic uint32_t *word = new_word();
    atomic_store(word, 7);
    ck_assert_int_eq(loop_watch_word(loop, &watch, word, 6, on_word, &n_calls), 0);
    run();
    run_for(1000);
    ck_assert_uint_eq(n_calls, 1);
}

TEST(a_word_fires_when_its_writer_in_another_process_wakes_it)
{
    need_futex();
    _Atomic uint32_t *word = new_word();
    ck_assert_int_eq(loop_watch_word(loop, &watch, word, 0, on_word, &n_calls), 0);
    run_for(1000);
    ck_assert_uint_eq(n_calls, 0);
    pid_t pid = fork();
    if (pid == 0) {
        atomic_store(word, 1);
        wake_futex_wake(word);
        _exit(0);
    }
    run();
    ck_assert_uint_eq(n_calls, 1);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

#define N_WAITERS 24u
static _Atomic unsigned n_waiting;

static void *wait_on(void *word)
{
    atomic_fetch_add(&n_waiting, 1);
    while (wake_futex_wait(word, 0, USEC_INFINITY) == -EINTR)
        ;
    return NULL;
}

TEST(a_wake_up_costs_the_same_however_many_waits_a_peer_has_armed)
{
    _Atomic uint32_t *word = new_word();
    pthread_t threads[N_WAITERS];
    unsigned n_woken = 0;

    need_futex();
    for (unsigned i = 0; i < N_WAITERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, wait_on, (void *)word), 0);
    while (atomic_load(&n_waiting) < N_WAITERS)
        (void)sched_yield();
    stop_after(200 * USEC_PER_MSEC); /* until they are in their system calls */
    run();
    loop_wake_word(loop, word);
    run_for(1000);
    while (n_woken < N_WAITERS - WAKE_PEER_MAX)
        n_woken += (unsigned)wake_futex_wake(word);
    ck_assert_uint_eq(n_woken, N_WAITERS - WAKE_PEER_MAX);
    for (unsigned i = 0; i < N_WAITERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

TEST(the_mapping_of_a_watched_word_may_go_away)
{
    need_futex();
    _Atomic uint32_t *word = new_word();
    ck_assert_int_eq(loop_watch_word(loop, &watch, word, 0, on_never, NULL), 0);
    run_for(1000);
    munmap((void *)word, 4096);
    run_for(1000);
    loop_unwatch(loop, &watch);
    run_for(1000);
}

static _Atomic uint32_t *second_word;

static void on_watch_second_word(void *userdata, uint32_t events)
{
    /* First, since the place that was given up last is taken first. */
    ck_assert_int_eq(loop_watch_word(loop, &watch, second_word, 0, on_never, NULL), 0);
    loop_unwatch(loop, &other);
}

/* The cancelled wait completes after a new one, of a callback before, has taken its place. */
TEST(a_stale_completion_does_not_fire_the_word_that_took_its_place)
{
    need_futex();
    _Atomic uint32_t *word = new_word();
    second_word = new_word();
    ck_assert_int_eq(loop_watch_fd(loop, &other, event_fd, POLLIN, on_watch_second_word, NULL), 0);
    ck_assert_int_eq(loop_watch_word(loop, &watch, word, 0, on_never, NULL), 0);
    stop_after(1000);
    run(); /* both are armed */
    ring_bell();
    loop_unwatch(loop, &watch);
    run_for(1000);
    loop_unwatch(loop, &watch);
}

static _Atomic uint32_t *woken_word;

static void on_wake_others(struct loop_deferred *deferred)
{
    atomic_fetch_add(woken_word, 1);
    for (int i = 0; i < 100; i++)
        loop_wake_word(loop, woken_word);
    loop_stop(loop);
}

TEST(a_sleeper_in_another_process_is_woken_even_if_the_queue_is_full, .bare = true)
{
    struct loop_deferred deferred;
    set_up_with(&(struct loop_options){.kind = LOOP_IO_URING, .entries = 8});
    need_futex();
    woken_word = new_word();
    pid_t pid = fork();
    if (pid == 0) {
        while (atomic_load(woken_word) == 0)
            (void)wake_futex_wait(woken_word, 0, USEC_INFINITY);
        _exit(0);
    }
    loop_deferred_init(&deferred, on_wake_others);
    loop_defer(loop, &deferred);
    run();
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    tear_down();
}

static void on_trace(void *userdata, uint32_t events)
{
    note(*(const char *)userdata);
    if (*(const char *)userdata == 'w')
        loop_stop(loop);
    else
        loop_unwatch(loop, &other);
}

TEST(descriptors_come_before_words_within_a_turn)
{
    need_futex();
    _Atomic uint32_t *word = new_word();
    atomic_store(word, 1);
    ring_bell();
    ck_assert_int_eq(loop_watch_word(loop, &watch, word, 0, on_trace, (void *)"w"), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &other, event_fd, POLLIN, on_trace, (void *)"f"), 0);
    run();
    ck_assert_str_eq(trace, "fw");
}

static void on_unwatch_word(void *userdata, uint32_t events)
{
    loop_unwatch(loop, &watch);
    loop_unwatch(loop, &other);
    loop_stop(loop);
}

TEST(a_word_that_has_fired_can_still_be_unwatched_by_a_descriptor_of_its_turn)
{
    need_futex();
    _Atomic uint32_t *word = new_word();
    atomic_store(word, 1);
    ring_bell();
    ck_assert_int_eq(loop_watch_word(loop, &watch, word, 0, on_never, NULL), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &other, event_fd, POLLIN, on_unwatch_word, NULL), 0);
    run();
    run_for(1000);
}

struct source {
    struct loop_hot hot;
    unsigned work, n_polls, n_cools;
    usec_t took; /* each poll takes this long */
    bool refuse_to_cool, leave, stop_when_cool;
};

static bool source_poll(struct loop_hot *hot)
{
    struct source *source = (struct source *)hot;
    source->n_polls++;
    if (source->leave) {
        loop_unheat(loop, hot);
        loop_stop(loop);
        source->hot.worked = 4711; /* as if the memory were somebody else's now */
        return false;
    }
    if (source->work == 0)
        return false;
    source->work--;
    for (const usec_t until = clock_now() + source->took; clock_now() < until;)
        continue;
    return true;
}

static bool source_cool(struct loop_hot *hot)
{
    struct source *source = (struct source *)hot;
    source->n_cools++;
    if (source->stop_when_cool && !source->refuse_to_cool)
        loop_stop(loop);
    if (!source->refuse_to_cool)
        return true;
    source->refuse_to_cool = false;
    source->work = 5;
    return false;
}

TEST(a_hot_source_is_polled_while_it_has_work_and_then_cooled)
{
    struct source source = {.work = 100, .stop_when_cool = true};
    loop_hot_init(&source.hot, source_poll, source_cool);
    loop_heat(loop, &source.hot);
    loop_heat(loop, &source.hot);
    run();
    ck_assert_uint_eq(source.work, 0);
    ck_assert_uint_ge(source.n_polls, 101);
    ck_assert_uint_lt(source.n_polls, 120);
    ck_assert_uint_eq(source.n_cools, 1);
    ck_assert(!list_linked(&source.hot.link));
}

TEST(a_source_that_cannot_cool_down_stays_hot)
{
    struct source source = {.refuse_to_cool = true, .stop_when_cool = true};
    loop_hot_init(&source.hot, source_poll, source_cool);
    loop_heat(loop, &source.hot);
    run();
    ck_assert_uint_eq(source.work, 0);
    ck_assert_uint_eq(source.n_cools, 2);
}

TEST(a_quiet_source_is_cooled_while_another_is_busy)
{
    struct source busy = {.work = 1000000000}, quiet = {.stop_when_cool = true};
    loop_hot_init(&busy.hot, source_poll, source_cool);
    loop_hot_init(&quiet.hot, source_poll, source_cool);
    loop_heat(loop, &busy.hot);
    loop_heat(loop, &quiet.hot);
    run();
    ck_assert_uint_eq(quiet.n_cools, 1);
    ck_assert_uint_eq(busy.n_cools, 0);
    loop_unheat(loop, &busy.hot);
}

static void on_turn_end(struct loop_deferred *deferred)
{
    loop_stop(loop);
}

TEST(a_turn_does_not_grow_with_the_number_of_busy_sources)
{
    struct source busy[40] = {0};
    struct loop_deferred end;
    unsigned n_polls = 0;
    loop_deferred_init(&end, on_turn_end);
    for (size_t i = 0; i < ELEMENTS(busy); i++) {
        busy[i].work = 1000000000;
        busy[i].took = 1500;
        loop_hot_init(&busy[i].hot, source_poll, source_cool);
        loop_heat(loop, &busy[i].hot);
    }
    for (unsigned turn = 0; turn < 10; turn++) {
        loop_defer(loop, &end);
        run();
    }
    for (size_t i = 0; i < ELEMENTS(busy); i++) {
        ck_assert_uint_le(busy[i].n_polls, busy[0].n_polls);
        ck_assert_uint_ge(busy[i].n_polls + 1, busy[0].n_polls);
        n_polls += busy[i].n_polls;
        loop_unheat(loop, &busy[i].hot);
    }
    ck_assert_uint_eq(n_polls, 40);
}

TEST(a_source_may_leave_and_vanish_in_its_own_poll)
{
    struct source source = {.leave = true};
    loop_hot_init(&source.hot, source_poll, source_cool);
    loop_heat(loop, &source.hot);
    run();
    ck_assert_uint_eq(source.n_polls, 1);
    ck_assert_uint_eq(source.n_cools, 0);
    ck_assert_uint_eq(source.hot.worked, 4711);
}

TEST(descriptors_are_served_while_a_source_is_busy)
{
    struct source busy = {.work = 1000000000};
    uint32_t events = 0;
    loop_hot_init(&busy.hot, source_poll, source_cool);
    loop_heat(loop, &busy.hot);
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_stop, &events), 0);
    stop_after(2000);
    run(); /* armed, and nothing happened */
    ck_assert_uint_eq(n_calls, 0);
    pid_t pid = fork();
    if (pid == 0) {
        ring_bell();
        _exit(0);
    }
    run();
    ck_assert_uint_eq(events, POLLIN);
    loop_unheat(loop, &busy.hot);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static struct loop_deferred first, second;

static void on_first(struct loop_deferred *deferred)
{
    note('1');
    if (strlen(trace) < 5) {
        loop_defer(loop, &second);
        loop_defer(loop, &second);
    } else {
        loop_stop(loop);
    }
}

static void on_second(struct loop_deferred *deferred)
{
    note('2');
    loop_defer(loop, &first);
}

TEST(deferred_work_runs_once_and_what_it_defers_runs_without_sleeping_between)
{
    loop_deferred_init(&first, on_first);
    loop_deferred_init(&second, on_second);
    loop_defer(loop, &first);
    loop_defer(loop, &first);
    run(); /* nothing else would ever wake it */
    ck_assert_str_eq(trace, "12121");
    loop_defer(loop, &second);
    loop_undefer(&second);
    run_for(1000);
    ck_assert_str_eq(trace, "12121");
}

TEST(a_spinning_loop_looks_on_for_its_limit_and_then_cools_what_is_quiet)
{
    struct source source = {.stop_when_cool = true};
    usec_t begin = clock_now();
    loop_set_spin(loop, 2000);
    loop_hot_init(&source.hot, source_poll, source_cool);
    loop_heat(loop, &source.hot);
    run();
    ck_assert_uint_ge(clock_now() - begin, 2000);
    ck_assert_uint_ge(source.n_polls, 2);
    ck_assert_uint_eq(source.n_cools, 1);
    ck_assert(!list_linked(&source.hot.link));
}

static void on_late(struct loop_deferred *deferred)
{
    note('l');
    loop_stop(loop);
}

TEST(what_is_late_is_done_before_the_loop_sleeps)
{
    loop_deferred_init(&first, on_late);
    loop_defer_late(loop, &first);
    loop_defer_late(loop, &first);
    run(); /* nothing else would ever wake it */
    ck_assert_str_eq(trace, "l");
}

TEST(what_is_late_is_not_put_off_by_work_that_never_ends)
{
    struct source busy = {.work = 1000000000};
    loop_set_spin(loop, 50);
    loop_hot_init(&busy.hot, source_poll, source_cool);
    loop_heat(loop, &busy.hot);
    loop_deferred_init(&first, on_late);
    loop_defer_late(loop, &first);
    run();
    ck_assert_str_eq(trace, "l");
    ck_assert_uint_ge(busy.n_polls, 1);
    loop_unheat(loop, &busy.hot);
}

TEST(what_was_late_can_be_had_in_this_turn_or_taken_back)
{
    struct source busy = {.work = 1000000000};
    loop_hot_init(&busy.hot, source_poll, source_cool);
    loop_heat(loop, &busy.hot);
    loop_deferred_init(&first, on_late);
    loop_deferred_init(&second, on_second);
    loop_defer_late(loop, &first);
    loop_defer_late(loop, &second);
    loop_defer(loop, &first);
    loop_undefer(&second);
    run();
    ck_assert_uint_eq(busy.n_polls, 1);
    ck_assert_str_eq(trace, "l");
    loop_unheat(loop, &busy.hot);
}

TEST(a_timer_ends_the_sleep_not_too_early)
{
    usec_t begin = clock_now();
    run_for(3000);
    ck_assert_uint_ge(clock_now() - begin, 3000);
    ck_assert_uint_ge(loop_now(loop), begin + 3000);
}

TEST(an_idle_loop_does_not_wake_up)
{
    struct rusage before, after;
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_never, NULL), 0);
    run_for(1000);
    stop_after(100 * USEC_PER_MSEC);
    getrusage(RUSAGE_SELF, &before);
    run();
    getrusage(RUSAGE_SELF, &after);
    ck_assert_int_le(after.ru_nvcsw - before.ru_nvcsw, 2);
}

TEST(the_eventfd_back_end_can_be_forced, .bare = true)
{
    set_up_with(&(struct loop_options){.kind = LOOP_IO_URING, .force_eventfd = true});
    ck_assert_int_eq(loop_wake_backend(loop), WAKE_EVENTFD);
    tear_down();
}

TEST(a_shortage_of_descriptors_is_an_error_not_a_reason, .bare = true)
{
    const char *reason = NULL;
    struct loop_options options = {.kind = LOOP_IO_URING};
    refuse_call(SYS_io_uring_setup, EMFILE);
    ck_assert_int_eq(loop_new(&loop, &options, &reason), -EMFILE);
}

static const struct {
    int error;
    const char *reason;
} REFUSALS[] = {
    {EPERM, "a seccomp filter or a security module: allow the system calls io_uring_setup"},
    {ENOSYS, "this kernel has no io_uring"},
    {ENOMEM, "RLIMIT_MEMLOCK"},
};

TEST(without_io_uring_the_loop_uses_epoll_and_says_why, .bare = true, .n = ELEMENTS(REFUSALS))
{
    const char *reason = NULL, *reason_for_epoll = NULL;

    unsetenv("TROUPE_LOOP");
    refuse_call(SYS_io_uring_setup, REFUSALS[_i].error);
    ck_assert_int_eq(loop_new(&loop, &(struct loop_options){.kind = LOOP_IO_URING}, &reason),
                     LOOP_E_UNAVAILABLE);
    ck_assert_msg(strstr(reason, REFUSALS[_i].reason), "%s", reason);
    ck_assert_ptr_null(strchr(reason, '\n'));
    ck_assert_int_eq(loop_new(&loop, &(struct loop_options){.kind = LOOP_ANY}, &reason_for_epoll),
                     0);
    ck_assert_int_eq(loop_kind(loop), LOOP_EPOLL);
    ck_assert_int_eq(loop_wake_backend(loop), WAKE_EVENTFD);
    ck_assert_str_eq(reason_for_epoll, reason);
    loop_free(loop);
}

TEST(epoll_can_be_chosen_and_then_nothing_is_the_matter, .bare = true)
{
    const char *reason = "";
    struct loop_options options = {.kind = LOOP_EPOLL};
    ck_assert_int_eq(loop_new(&loop, &options, &reason), 0);
    ck_assert_int_eq(loop_kind(loop), LOOP_EPOLL);
    ck_assert_ptr_null(reason);
    loop_free(loop);
}

/* A whole number of milliseconds would do for neither of them. */
TEST(timers_are_as_precise_without_epoll_pwait2, .bare = true)
{
    uint32_t events = 0;
    refuse_call(SYS_epoll_pwait2, ENOSYS);
    set_up_epoll();
    usec_t begin = clock_now();
    run_for(1500);
    ck_assert_uint_ge(clock_now() - begin, 1500);
    ring_bell();
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_stop, &events), 0);
    run_for(10 * USEC_PER_SEC);
    ck_assert_uint_eq(events, POLLIN);
    tear_down();
}

static usec_t processor_time(void)
{
    struct timespec now;
    ck_assert_int_eq(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    return (usec_t)now.tv_sec * USEC_PER_SEC + (usec_t)now.tv_nsec / 1000;
}

/* A process that has the file open would keep it in the set after we have closed our descriptor. */
TEST(a_descriptor_that_is_closed_after_its_watch_disturbs_no_sleep)
{
    usec_t before;
    int copy = fcntl(event_fd, F_DUPFD_CLOEXEC, 0);
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_never, NULL), 0);
    run_for(1000);
    loop_unwatch(loop, &watch);
    event_fd = close_fd(event_fd);
    wake_eventfd_wake(copy);
    before = processor_time();
    run_for(100 * USEC_PER_MSEC);
    ck_assert_uint_lt(processor_time() - before, 50 * USEC_PER_MSEC); /* of 100 */
    close_fd(copy);
}

static void take_a_while(struct loop_deferred *deferred)
{
    const usec_t end = clock_now() + 20 * USEC_PER_MSEC;
    while (clock_now() < end)
        ;
}

static void end_sleep(struct timer *timer, usec_t now)
{
    loop_stop(loop);
}

/* Runs the loop for 200 us. Returns whether it has slept. */
static bool sleeps(void)
{
    struct rusage before, after;
    stop_after(200);
    getrusage(RUSAGE_SELF, &before);
    run();
    getrusage(RUSAGE_SELF, &after);
    return after.ru_nvcsw > before.ru_nvcsw;
}

/* Another process that needs the CPU ends the waking, or takes the time for the sleep, but not each
 * time. */
static bool comes(bool sleep, bool stay_awake, int tries)
{
    for (int i = 0; i < tries; i++) {
        loop_stay_awake(loop, stay_awake ? clock_now() + USEC_PER_SEC : 0);
        if (sleeps() == sleep)
            return true;
    }
    return false;
}

TEST(a_loop_that_stays_awake_does_not_sleep_unless_it_must_not_spin)
{
    ck_assert(comes(true, true, 20));
    loop_set_spin(loop, 1);
    ck_assert(comes(false, true, 10000));
    ck_assert(comes(true, false, 20));
}

TEST(the_longest_turn_is_measured_and_sleep_is_no_part_of_it)
{
    struct loop_deferred deferred;
    struct timer timer;
    timer_init(&timer, end_sleep);
    timer_arm(loop_timers(loop), &timer, clock_now() + USEC_PER_SEC / 2);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_lt(loop_turns(loop).longest, USEC_PER_SEC / 2);
    loop_deferred_init(&deferred, take_a_while);
    loop_defer(loop, &deferred);
    timer_arm(loop_timers(loop), &timer, clock_now() + 100 * USEC_PER_MSEC);
    ck_assert_int_eq(loop_run(loop), 0);
    ck_assert_uint_ge(loop_turns(loop).longest, 20 * USEC_PER_MSEC);
    ck_assert_uint_eq(loop_turns(loop).recent, loop_turns(loop).longest);
}

/* The lowest descriptor that is free becomes the limit, as if all were in use. */
static void forbid_descriptors(void)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int lowest = fcntl(event_fd, F_DUPFD_CLOEXEC, 0);
    ck_assert_int_ge(lowest, 0);
    close_fd(lowest);
    limit.rlim_cur = (rlim_t)lowest;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void permit_descriptors(void)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST(a_watch_that_lacks_a_descriptor_keeps_no_other_from_being_armed)
{
    struct loop_watch third = LOOP_WATCH_NULL;
    uint32_t events = 0;
    int full = eventfd(1, EFD_CLOEXEC);
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_never, NULL), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &other, event_fd, POLLIN, on_never, NULL), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &third, full, POLLIN, on_stop, &events), 0);
    forbid_descriptors();
    run();
    ck_assert_uint_eq(events, POLLIN);
    close_fd(full);
}

TEST(a_loop_that_lacks_a_descriptor_sleeps_and_arms_the_watch_once_there_is_one)
{
    struct rusage before, after;
    uint32_t events = 0;
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_never, NULL), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &other, event_fd, POLLIN, on_stop, &events), 0);
    forbid_descriptors();
    stop_after(100 * USEC_PER_MSEC);
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
    run();
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
    ck_assert_int_gt(after.ru_nvcsw, before.ru_nvcsw);
    loop_unwatch(loop, &watch);
    ring_bell();
    permit_descriptors();
    run();
    ck_assert_uint_eq(events, POLLIN);
}

TEST(a_watch_that_lacks_a_descriptor_can_be_ended_and_paused)
{
    ck_assert_int_eq(loop_watch_fd(loop, &watch, event_fd, POLLIN, on_never, NULL), 0);
    ck_assert_int_eq(loop_watch_fd(loop, &other, event_fd, POLLIN, on_never, NULL), 0);
    forbid_descriptors();
    run_for(1000);
    ck_assert_int_eq(loop_watch_events(loop, &other, 0), 0);
    loop_unwatch(loop, &watch);
    permit_descriptors();
    ring_bell();
    run_for(30 * USEC_PER_MSEC);
    ck_assert_int_eq(loop_watch_events(loop, &other, POLLIN), 0);
    loop_unwatch(loop, &other);
    run_for(30 * USEC_PER_MSEC);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down, .other_setup = set_up_epoll};

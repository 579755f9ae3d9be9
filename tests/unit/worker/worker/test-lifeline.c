/* SPDX-License-Identifier: MIT */
#include "tests/unit/suite.h"
#include "worker/worker/lifeline.h"
#include <linux/futex.h>
#include <sys/mman.h>

static struct memory_header *outbox;
static struct lifeline lifeline;

static void set_up(void)
{
    outbox =
        mmap(NULL, MEMORY_HEADER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(outbox, MAP_FAILED);
    lifeline = (struct lifeline){.outbox = NULL};
}

static void tear_down(void)
{
    munmap(outbox, MEMORY_HEADER_SIZE);
}

/* Of another process that ran `fn` to its end, or died in it. */
static uint32_t word_after(void (*fn)(void))
{
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        fn();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return atomic_load(&outbox->owner);
}

static void hold(void)
{
    lifeline_hold(&lifeline, outbox);
    if (!lifeline.outbox || !(atomic_load(&outbox->owner) & FUTEX_WAITERS))
        abort();
}

static void hold_and_exit(void)
{
    hold();
    _exit(3);
}

static void hold_and_be_killed(void)
{
    hold();
    (void)raise(SIGKILL);
}

static void hold_and_release(void)
{
    hold();
    if (!lifeline_release(&lifeline))
        atomic_store(&outbox->owner, UINT32_MAX);
}

TEST(a_holder_that_is_killed_or_leaves_is_marked)
{
    ck_assert_uint_ne(word_after(hold_and_be_killed) & FUTEX_OWNER_DIED, 0);
    ck_assert_uint_ne(word_after(hold_and_exit) & FUTEX_OWNER_DIED, 0);
}

TEST(who_has_let_go_of_it_is_not_marked)
{
    ck_assert_uint_eq(word_after(hold_and_release), 0);
}

static void *thread_holds(void *userdata)
{
    hold();
    return NULL;
}

static void *thread_works(void *userdata)
{
    lifeline_check(&lifeline);
    return NULL;
}

static void run_thread(void *(*fn)(void *))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, fn, NULL) != 0 || pthread_join(thread, NULL) != 0)
        abort();
}

/* pthread_join() returns once the thread's number is cleared, which is behind the marking. */
TEST(the_end_of_the_thread_that_holds_it_is_marked_while_the_process_lives_on)
{
    run_thread(thread_holds);
    ck_assert_uint_ne(atomic_load(&outbox->owner) & FUTEX_OWNER_DIED, 0);
    ck_assert(!lifeline_release(&lifeline));
}

static void hold_and_leave_the_work_to_another(void)
{
    hold();
    run_thread(thread_works);
}

TEST(when_another_thread_takes_over_the_first_ones_end_says_nothing)
{
    ck_assert_uint_eq(word_after(hold_and_leave_the_work_to_another), 0);
}

static void hold_beside_a_mutex_of_the_programs_own(void)
{
    pthread_mutex_t *own =
        mmap(NULL, sizeof(*own), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(own, &attributes);
    hold();
    if (pthread_mutex_lock(own) != 0)
        abort();
    if (fork() == 0)
        _exit(0); /* a child's end is not the worker's */
    if (wait(NULL) < 0 || (atomic_load(&outbox->owner) & FUTEX_OWNER_DIED))
        abort();
    if (pthread_mutex_unlock(own) != 0)
        abort();
    (void)raise(SIGKILL);
}

TEST(it_gets_along_with_robust_mutexes_and_children_of_the_program)
{
    ck_assert_uint_ne(word_after(hold_beside_a_mutex_of_the_programs_own) & FUTEX_OWNER_DIED, 0);
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};

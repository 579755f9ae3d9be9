/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job.h"
#include "supervisor/job/queue.h"
#include "tests/unit/suite.h"

#define N_JOBS 6

static struct queue queue;
static struct job jobs[N_JOBS];

static void setup(void)
{
    queue_init(&queue);
    for (unsigned i = 0; i < N_JOBS; i++) {
        jobs[i] = (struct job){.priority = QUEUE_PRIORITY_DEFAULT, .created_at = 100 + i};
        list_init(&jobs[i].link);
    }
}

static void push(unsigned index, uint8_t priority)
{
    jobs[index].priority = priority;
    queue_push_back(&queue, &jobs[index]);
}

/* The jobs' indexes in the order of the queue, as decimal digits, by looking. */
static unsigned looked_at(void)
{
    unsigned number = 0;

    for (unsigned band = 0; band < QUEUE_PRIORITIES; band++)
        list_for_each (node, &queue.bands[band])
            number = number * 10 + (unsigned)(list_entry(node, struct job, link) - jobs);
    return number;
}

/* The same, by taking. */
static unsigned taken(void)
{
    unsigned number = 0;
    struct job *job;

    while ((job = queue_first(&queue))) {
        queue_remove(&queue, job);
        number = number * 10 + (unsigned)(job - jobs);
    }
    return number;
}

TEST(an_empty_queue_has_no_first_and_no_oldest)
{
    ck_assert_ptr_null(queue_first(&queue));
    ck_assert_uint_eq(queue_oldest(&queue), 0);
    ck_assert_uint_eq(queue.n_jobs, 0);
}

TEST(equals_leave_in_the_order_they_came)
{
    push(1, 7);
    push(2, 7);
    push(3, 7);
    ck_assert_uint_eq(taken(), 123);
}

TEST(the_smaller_number_goes_first)
{
    push(1, 63);
    push(2, 32);
    push(3, 0);
    push(4, 33);
    push(5, 0);
    ck_assert_uint_eq(queue.n_jobs, 5);
    ck_assert_uint_eq(looked_at(), 35241);
    ck_assert_uint_eq(taken(), 35241);
    ck_assert_uint_eq(queue.n_jobs, 0);
}

TEST(what_comes_back_goes_before_its_equals_but_not_before_the_more_urgent)
{
    push(1, 5);
    push(2, 6);
    jobs[3].priority = 6;
    queue_push_front(&queue, &jobs[3]);
    ck_assert_uint_eq(taken(), 132);
}

TEST(one_from_the_middle_can_be_removed)
{
    push(1, 5);
    push(2, 5);
    push(3, 5);
    push(4, 9);
    queue_remove(&queue, &jobs[2]);
    ck_assert(!list_linked(&jobs[2].link));
    ck_assert_uint_eq(looked_at(), 134);
    queue_remove(&queue, &jobs[1]);
    queue_remove(&queue, &jobs[3]);
    ck_assert_uint_eq(taken(), 4);
}

TEST(each_of_the_priorities_is_found)
{
    for (unsigned priority = 0; priority < QUEUE_PRIORITIES; priority++) {
        push(1, (uint8_t)priority);
        ck_assert_uint_eq(queue.occupied, UINT64_C(1) << priority);
        ck_assert_ptr_eq(queue_first(&queue), &jobs[1]);
        ck_assert_uint_eq(queue.n_jobs, 1);
        queue_remove(&queue, &jobs[1]);
        ck_assert_uint_eq(queue.occupied, 0);
    }
}

TEST(the_oldest_may_be_the_least_urgent)
{
    push(2, 0);
    push(1, 63);
    push(3, 32);
    ck_assert_uint_eq(queue_oldest(&queue), jobs[1].created_at);
    queue_remove(&queue, &jobs[1]);
    ck_assert_uint_eq(queue_oldest(&queue), jobs[2].created_at);
}

const struct suite suite = {.setup = setup};

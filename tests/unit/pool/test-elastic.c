/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/elastic.h"
#include "tests/unit/suite.h"

#include <math.h>

/*
 * A pool under a virtual clock: jobs come by a Poisson process of a changing rate, workers take
 * time to start, and the controller sees what it would see in the supervisor.
 */

#define SEC         USEC_PER_SEC
#define MS          USEC_PER_MSEC
#define WORKERS_MAX 64
#define QUEUE_MAX   (1u << 16)
#define WAITS_MAX   (1u << 19)
/* In one scenario. */
#define DURATION (1200 * SEC)

enum worker_state {
    ABSENT,
    STARTING,
    IDLE,
    BUSY,
};

struct worker {
    enum worker_state state;
    usec_t until; /* the end of its start, or of its job */
    bool leaves;  /* after its job */
};

static struct {
    double (*rate)(usec_t now); /* jobs per second */
    double job_time;            /* the mean, in µs */
    bool bimodal;               /* one job in ten takes ten times as long as the others */
    usec_t start_time;
    struct elastic_bounds bounds;
    struct elastic elastic;
    uint64_t random;
    usec_t now, next_look, next_job;
    struct worker workers[WORKERS_MAX];
    size_t size, n_up, n_first, n_last;
    uint64_t n_done, n_running;
    double need; /* the most workers that the true load has asked for */
    usec_t grown_at, shrunk_at;
    size_t n_waits, n_too_many, n_swings, n_idle_returns;
} sim;

static usec_t came_at[QUEUE_MAX];
static double waits[WAITS_MAX];

/* ---- chance ---- */

static double uniform(void)
{
    sim.random ^= sim.random << 13;
    sim.random ^= sim.random >> 7;
    sim.random ^= sim.random << 17;
    return (double)(sim.random >> 11) / 9007199254740992.0;
}

static double exponential(double mean)
{
    return -mean * log(1 - uniform());
}

static usec_t draw_job_time(void)
{
    /* 0.9 × t + 0.1 × 10 t = 1.9 t */
    const double drawn =
        sim.bimodal ? sim.job_time / 1.9 * (uniform() < 0.1 ? 10 : 1) : exponential(sim.job_time);

    return (usec_t)drawn + 1;
}

/* ---- the pool ---- */

static size_t n_queued(void)
{
    return sim.n_last - sim.n_first;
}

static double horizon(void)
{
    return (double)(sim.bounds.target_wait > sim.start_time ? sim.bounds.target_wait
                                                            : sim.start_time);
}

static void hand_out(void)
{
    for (size_t i = 0; i < WORKERS_MAX && n_queued() > 0; i++) {
        struct worker *worker = &sim.workers[i];

        if (worker->state != IDLE)
            continue;
        ck_assert_uint_lt(sim.n_waits, WAITS_MAX);
        /* Before that, no pool could have grown to the first load. */
        if (came_at[sim.n_first % QUEUE_MAX] > 5 * sim.start_time)
            waits[sim.n_waits++] = (double)(sim.now - came_at[sim.n_first % QUEUE_MAX]);
        sim.n_first++;
        worker->state = BUSY;
        worker->until = sim.now + draw_job_time();
        sim.n_running++;
    }
}

static void note_growth(void)
{
    const double wait = (double)n_queued() * sim.job_time / (double)(sim.n_up + 1);

    if (sim.shrunk_at > 0 && sim.now - sim.shrunk_at < sim.bounds.idle && wait < horizon() / 4)
        sim.n_idle_returns++;
    sim.grown_at = sim.now;
}

static void note_shrinkage(void)
{
    if (sim.grown_at > 0 && sim.now - sim.grown_at < sim.bounds.idle)
        sim.n_swings++;
    if (sim.shrunk_at > 0)
        ck_assert_uint_ge(sim.now - sim.shrunk_at, sim.bounds.idle);
    sim.shrunk_at = sim.now;
}

static void set_size(size_t size)
{
    ck_assert_uint_ge(size, sim.bounds.low);
    ck_assert_uint_le(size, sim.bounds.high);
    for (size_t i = sim.size; i < size; i++) {
        sim.workers[i].leaves = false;
        if (sim.workers[i].state == ABSENT)
            sim.workers[i] = (struct worker){.state = STARTING, .until = sim.now + sim.start_time};
    }
    for (size_t i = size; i < sim.size; i++) {
        sim.n_up -= sim.workers[i].state == IDLE || sim.workers[i].state == BUSY;
        sim.workers[i].leaves = sim.workers[i].state == BUSY; /* it ends its job */
        if (sim.workers[i].state != BUSY)
            sim.workers[i].state = ABSENT;
    }
    sim.size = size;
}

/* The formula with the true load, whatever the controller has measured. */
static void judge(void)
{
    const double each = sim.job_time / horizon();
    const double need =
        sim.rate(sim.now) * sim.job_time / SEC + (double)n_queued() * (each < 1 ? each : 1);

    sim.need = fmax(sim.need, need);
    if (sim.size > sim.bounds.low && (double)sim.size > 1 + 1.1 * ceil(sim.need))
        sim.n_too_many++;
}

static void decide(void)
{
    const struct elastic_view view = {
        .n_entered = sim.n_done + sim.n_running + n_queued(),
        .n_done = sim.n_done,
        .n_queued = n_queued(),
        .n_running = sim.n_running,
        .size = sim.size,
        .n_up = sim.n_up,
        .start_time = sim.start_time,
    };
    const struct elastic_decision decision =
        elastic_decide(&sim.elastic, &sim.bounds, &view, sim.now);

    judge();
    ck_assert_uint_gt(decision.next, sim.now);
    sim.next_look = decision.next;
    if (decision.size == sim.size)
        return;
    if (decision.size > sim.size)
        note_growth();
    else
        note_shrinkage();
    set_size(decision.size);
    judge();
}

/* ---- time ---- */

static usec_t next_event(void)
{
    usec_t next = usec_min(sim.next_look, sim.next_job);

    for (size_t i = 0; i < WORKERS_MAX; i++)
        if (sim.workers[i].state == STARTING || sim.workers[i].state == BUSY)
            next = usec_min(next, sim.workers[i].until);
    return next;
}

static void advance_workers(void)
{
    for (size_t i = 0; i < WORKERS_MAX; i++) {
        struct worker *worker = &sim.workers[i];

        if ((worker->state != STARTING && worker->state != BUSY) || worker->until > sim.now)
            continue;
        if (worker->state == BUSY) {
            sim.n_done++;
            sim.n_running--;
        } else {
            sim.n_up++;
        }
        worker->state = worker->leaves ? ABSENT : IDLE;
    }
}

/* Candidates come at RATE_MAX; so many of them are jobs as the rate at that time says. */
#define RATE_MAX 75.0

static void plan_job(void)
{
    sim.next_job = sim.now + 1 + (usec_t)exponential(SEC / RATE_MAX);
}

static void take_job(void)
{
    if (uniform() < sim.rate(sim.now) / RATE_MAX) {
        came_at[sim.n_last++ % QUEUE_MAX] = sim.now;
        ck_assert_uint_lt(n_queued(), QUEUE_MAX);
    }
    plan_job();
}

static void run_until(usec_t end)
{
    while (sim.now < end) {
        sim.now = usec_min(next_event(), end);
        advance_workers();
        if (sim.now >= sim.next_job)
            take_job();
        hand_out();
        decide();
    }
}

static void begin(size_t low, size_t high)
{
    sim.bounds =
        (struct elastic_bounds){.low = low, .high = high, .target_wait = SEC, .idle = 30 * SEC};
    sim.random = 0x9e3779b97f4a7c15u;
    sim.now = SEC;
    sim.job_time = 400 * MS;
    set_size(low);
    plan_job();
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double p95(void)
{
    ck_assert_uint_gt(sim.n_waits, 100);
    qsort(waits, sim.n_waits, sizeof(*waits), compare);
    return waits[sim.n_waits * 95 / 100];
}

/* ---- scenarios ---- */

static double constant(usec_t now)
{
    return 20;
}

static double step(usec_t now)
{
    return now < 120 * SEC ? 4 : now < 1000 * SEC ? 40 : 8;
}

static double ramp(usec_t now)
{
    return now < 600 * SEC ? 3 + 47 * (double)now / (600.0 * SEC) : 50;
}

static double burst(usec_t now)
{
    return now % (60 * SEC) < 3 * SEC ? 75 : 5;
}

/* Swings with the period in which the pool loses a worker, and back. */
static double resonance(usec_t now)
{
    return now % (60 * SEC) < 30 * SEC ? 40 : 5;
}

static const usec_t START_TIMES[] = {MS, SEC, 20 * SEC};
#define N_SCENARIOS (2 * (int)(sizeof(START_TIMES) / sizeof(*START_TIMES)))

/* `i`: start time, and how long jobs take. */
static void check_load(double (*rate)(usec_t now), int i)
{
    sim.rate = rate;
    sim.bimodal = i % 2 == 1;
    sim.start_time = START_TIMES[i / 2];
    begin(2, WORKERS_MAX);
    run_until(DURATION);
    ck_assert_uint_eq(sim.n_too_many, 0);
    ck_assert_uint_eq(sim.n_swings, 0);
    ck_assert_uint_eq(sim.n_idle_returns, 0);
    ck_assert_double_le(p95(), 2 * horizon());
}

#define SCENARIO(load)                                                                             \
    TEST(E4_##load##_is_followed_without_overshoot_reversal_or_long_waits, .n = N_SCENARIOS,       \
         .native = true)                                                                           \
    {                                                                                              \
        check_load(load, _i);                                                                      \
    }
SCENARIO(constant)
SCENARIO(step)
SCENARIO(ramp)
SCENARIO(burst)
SCENARIO(resonance)

/* ---- single decisions ---- */

static const struct elastic_bounds zero_to_eight = {
    .low = 0, .high = 8, .target_wait = SEC, .idle = 30 * SEC};

TEST(E1_the_first_job_starts_the_first_worker)
{
    struct elastic elastic = {0};
    struct elastic_view view = {0};

    ck_assert_uint_eq(elastic_decide(&elastic, &zero_to_eight, &view, SEC).size, 0);
    view.n_entered = view.n_queued = 1;
    ck_assert_uint_eq(elastic_decide(&elastic, &zero_to_eight, &view, 2 * SEC).size, 1);
}

TEST(E3_a_pool_at_rest_is_not_looked_at)
{
    struct elastic elastic = {0};
    struct elastic_view view = {.size = 1, .n_up = 1};
    struct elastic_decision decision = elastic_decide(&elastic, &zero_to_eight, &view, SEC);

    ck_assert_uint_eq(decision.next, 31 * SEC);
    decision = elastic_decide(&elastic, &zero_to_eight, &view, decision.next);
    ck_assert_uint_eq(decision.size, 0);
    ck_assert_uint_eq(decision.next, USEC_INFINITY);
}

TEST(E1_growth_at_most_doubles_what_is_up)
{
    struct elastic elastic = {0};
    struct elastic_view view = {
        .n_entered = 1000, .n_queued = 996, .n_running = 4, .size = 4, .n_up = 4};

    (void)elastic_decide(&elastic, &zero_to_eight, &view, SEC);
    view.n_up = 3; /* one of them starts again */
    ck_assert_uint_eq(elastic_decide(&elastic, &zero_to_eight, &view, 2 * SEC).size, 6);
    ck_assert_int_eq(elastic.hold, ELASTIC_STARTING);
    view.size = 6;
    ck_assert_uint_eq(elastic_decide(&elastic, &zero_to_eight, &view, 3 * SEC).size, 6);
    view.n_up = 6;
    ck_assert_uint_eq(elastic_decide(&elastic, &zero_to_eight, &view, 4 * SEC).size, 8);
    ck_assert_int_eq(elastic.hold, ELASTIC_HIGHEST);
}

TEST(E1_each_long_job_gets_a_worker)
{
    struct elastic elastic = {0};
    struct elastic_view view = {0};
    usec_t now = SEC;

    (void)elastic_decide(&elastic, &zero_to_eight, &view, now);
    view.n_entered = view.n_queued = 5;
    for (unsigned i = 0; i < 40; i++) {
        view.size = elastic_decide(&elastic, &zero_to_eight, &view, now += SEC).size;
        view.n_up = view.size;
        view.n_running = view.size < 5 ? view.size : 5;
        view.n_queued = 5 - view.n_running;
    }
    ck_assert_uint_eq(view.size, 5);
}

TEST(E1_a_busy_worker_does_not_go)
{
    struct elastic elastic = {0};
    struct elastic_view view = {.n_entered = 3, .n_running = 3, .size = 3, .n_up = 3};

    for (usec_t now = SEC; now < 600 * SEC; now += 10 * SEC)
        ck_assert_uint_eq(elastic_decide(&elastic, &zero_to_eight, &view, now).size, 3);
}

TEST(E1_other_bounds_are_obeyed_at_once_when_there_are_too_few)
{
    const struct elastic_bounds bounds = {.low = 3, .high = 5, .target_wait = SEC, .idle = SEC};
    struct elastic elastic = {0};
    const struct elastic_view view = {.size = 1, .n_up = 1};

    ck_assert_uint_eq(elastic_decide(&elastic, &bounds, &view, SEC).size, 3);
}

TEST(E2_pressure_stops_growth_until_it_is_over)
{
    struct elastic elastic = {0};
    struct elastic_view view = {.size = 2, .n_up = 2};
    struct elastic_decision decision;

    (void)elastic_decide(&elastic, &zero_to_eight, &view, SEC);
    view = (struct elastic_view){.n_entered = 50,
                                 .n_queued = 48,
                                 .n_running = 2,
                                 .size = 2,
                                 .n_up = 2,
                                 .pressed_until = 20 * SEC};
    (void)elastic_decide(&elastic, &zero_to_eight, &view, 9 * SEC);
    decision = elastic_decide(&elastic, &zero_to_eight, &view, 19 * SEC);
    ck_assert_uint_eq(decision.size, 2);
    ck_assert_int_eq(elastic.hold, ELASTIC_PRESSURE);
    ck_assert_uint_eq(decision.next, 20 * SEC);
    ck_assert_uint_eq(elastic_decide(&elastic, &zero_to_eight, &view, 20 * SEC).size, 4);
}

TEST(E2_with_a_threshold_each_step_waits_for_the_pressure_of_the_last_one)
{
    const struct elastic_bounds bounds = {
        .low = 0, .high = 64, .target_wait = SEC, .idle = 30 * SEC, .settle = 2 * SEC};
    struct elastic elastic = {0};
    struct elastic_view view = {
        .n_entered = 100, .n_queued = 96, .n_running = 4, .size = 4, .n_up = 4};
    struct elastic_decision decision;

    (void)elastic_decide(&elastic, &bounds, &view, SEC);
    ck_assert_uint_eq(elastic_decide(&elastic, &bounds, &view, 2 * SEC).size, 8);
    view.size = view.n_up = view.n_running = 8;
    view.n_queued = 92;
    decision = elastic_decide(&elastic, &bounds, &view, 3 * SEC);
    ck_assert_uint_eq(decision.size, 8);
    ck_assert_int_eq(elastic.hold, ELASTIC_SETTLING);
    ck_assert_uint_eq(decision.next, 4 * SEC);
    ck_assert_uint_eq(elastic_decide(&elastic, &bounds, &view, 4 * SEC).size, 16);
}

TEST(E2_lasting_pressure_makes_it_smaller_down_to_its_lowest_size)
{
    const struct elastic_bounds bounds = {.low = 2, .high = 16, .target_wait = SEC, .idle = SEC};
    struct elastic elastic = {0};
    struct elastic_view view = {.n_running = 16, .size = 16, .n_up = 16};
    static const size_t sizes[] = {12, 9, 6, 4, 3, 2, 2};

    (void)elastic_decide(&elastic, &bounds, &view, SEC);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        view.n_reliefs++;
        view.pressed_until = (i + 4) * SEC;
        view.size = elastic_decide(&elastic, &bounds, &view, (i + 2) * SEC).size;
        ck_assert_uint_eq(view.size, sizes[i]);
    }
}

/* As while a limit holds the next job. */
TEST(a_pool_with_a_worker_for_each_job_is_not_looked_at)
{
    const struct elastic_bounds bounds = {
        .low = 1, .high = 4, .target_wait = SEC, .idle = 30 * SEC};
    struct elastic_view view = {
        .n_entered = 1, .n_queued = 1, .size = 1, .n_up = 1, .start_time = MS};
    struct elastic elastic = {0};

    ck_assert_uint_eq(elastic_decide(&elastic, &bounds, &view, SEC).next, USEC_INFINITY);
    view.n_running = 1;
    ck_assert_uint_lt(elastic_decide(&elastic, &bounds, &view, 2 * SEC).next, 3 * SEC);
}

const struct suite suite = {0};

/* SPDX-License-Identifier: MIT */
#include "supervisor/pool/elastic.h"

#include <sys/param.h>

/* The rate of arrival is that of the last IdleSec=, within these bounds. */
#define WINDOW_MIN USEC_PER_SEC
#define WINDOW_MAX (60 * USEC_PER_SEC)
/* The average time of jobs is that of about the last JOBS_MAX ones. */
#define JOBS_MAX 1024u
/* The shortest time between two looks at a pool with more jobs than workers: the longer its jobs
 * run, the longer they count. */
#define LOOK_MIN (10 * USEC_PER_MSEC)

static usec_t window_of(const struct elastic_bounds *bounds)
{
    if (bounds->idle < WINDOW_MIN)
        return WINDOW_MIN;
    return usec_min(bounds->idle, WINDOW_MAX);
}

/* ---- measuring ---- */

static void begin(struct elastic *elastic, const struct elastic_view *view, usec_t now)
{
    *elastic = (struct elastic){.seen_at = now,
                                .n_entered = view->n_entered,
                                .n_done = view->n_done,
                                .n_reliefs = view->n_reliefs,
                                .window_at = now,
                                .enough_since = now};
    elastic->arrivals[1] = view->n_queued;
}

static void turn_windows(struct elastic *elastic, usec_t window, usec_t now)
{
    const uint64_t n = usec_sub(now, elastic->window_at) / window;

    if (n == 0)
        return;
    elastic->arrivals[0] = n == 1 ? elastic->arrivals[1] : 0;
    elastic->arrivals[1] = 0;
    elastic->window_at += n * window;
}

static void note_work(struct elastic *elastic, const struct elastic_view *view, usec_t now)
{
    elastic->busy_time += elastic->n_busy * usec_sub(now, elastic->seen_at);
    if (view->n_done > elastic->n_done)
        elastic->busy_n += view->n_done - elastic->n_done;
    while (elastic->busy_n > JOBS_MAX) {
        elastic->busy_n /= 2;
        elastic->busy_time /= 2;
    }
}

static void observe(struct elastic *elastic, const struct elastic_bounds *bounds,
                    const struct elastic_view *view, usec_t now)
{
    if (elastic->seen_at == 0)
        begin(elastic, view, now);
    turn_windows(elastic, window_of(bounds), now);
    note_work(elastic, view, now);
    if (view->n_entered > elastic->n_entered)
        elastic->arrivals[1] += view->n_entered - elastic->n_entered;
    elastic->n_entered = view->n_entered;
    elastic->n_done = view->n_done;
    elastic->n_busy = MIN(view->n_running, view->n_up);
    elastic->seen_at = now;
}

usec_t elastic_job_time(const struct elastic *elastic)
{
    return elastic->busy_time / (elastic->busy_n > 0 ? elastic->busy_n : 1);
}

/* Attempts that come in a microsecond. */
static double rate_of(const struct elastic *elastic, usec_t window, usec_t now)
{
    const double gone = (double)usec_sub(now, elastic->window_at) / (double)window;

    return ((double)elastic->arrivals[0] * (1 - gone) + (double)elastic->arrivals[1]) /
           (double)window;
}

/* ---- deciding ---- */

/* The time within which the waiting jobs are to begin. */
static usec_t horizon_of(const struct elastic_bounds *bounds, const struct elastic_view *view)
{
    const usec_t horizon =
        bounds->target_wait > view->start_time ? bounds->target_wait : view->start_time;

    return horizon > 0 ? horizon : 1;
}

/* Returns how many workers the load keeps busy. Long jobs keep theirs busy even if no job comes. */
static double load_of(const struct elastic *elastic, usec_t window, usec_t horizon, usec_t now)
{
    const double job_time = (double)elastic_job_time(elastic);
    const double load = rate_of(elastic, window, now) * job_time;
    double stay;

    if (job_time <= (double)horizon)
        return load;
    stay = (double)elastic->n_busy * (1 - (double)horizon / job_time);
    return load > stay ? load : stay;
}

/* Returns how many workers the pool wants: no more than there are jobs, and none for a job that one
 * of its workers can do in time. */
static uint64_t count_wanted(const struct elastic *elastic, const struct elastic_bounds *bounds,
                             const struct elastic_view *view, usec_t now)
{
    const uint64_t n_jobs = view->n_queued + view->n_running;
    const usec_t horizon = horizon_of(bounds, view);
    const double job_time = (double)elastic_job_time(elastic) / (double)horizon;
    const double wanted = load_of(elastic, window_of(bounds), horizon, now) +
                          (double)view->n_queued * (job_time < 1 ? job_time : 1);

    if (n_jobs == 0)
        return 0;
    if (wanted >= (double)n_jobs)
        return n_jobs;
    return wanted <= 1 ? 1 : (uint64_t)(wanted + 0.999);
}

/* Whether jobs would wait too long without another worker, so that the load does not just waver. */
static bool is_urgent(const struct elastic *elastic, const struct elastic_bounds *bounds,
                      const struct elastic_view *view)
{
    const double work = (double)view->n_queued * (double)elastic_job_time(elastic);

    return view->n_up == 0 || 2 * work > (double)view->n_up * (double)horizon_of(bounds, view);
}

static usec_t settled_at(const struct elastic *elastic, const struct elastic_bounds *bounds)
{
    return elastic->grown_at > 0 ? usec_add(elastic->grown_at, bounds->settle) : 0;
}

static bool may_grow(const struct elastic *elastic, const struct elastic_bounds *bounds,
                     const struct elastic_view *view, usec_t now)
{
    return elastic->shrunk_at == 0 || now >= usec_add(elastic->shrunk_at, bounds->idle) ||
           is_urgent(elastic, bounds, view);
}

static size_t grow(struct elastic *elastic, const struct elastic_bounds *bounds,
                   const struct elastic_view *view, usec_t now, enum elastic_hold *ret_hold)
{
    const size_t ceiling = view->n_up > 0 ? 2 * view->n_up : 1;
    size_t size = view->size;

    *ret_hold = ELASTIC_SETTLING;
    if (size > 0 && now < settled_at(elastic, bounds))
        return size;
    if (ceiling > size)
        size = (size_t)MIN(MIN(elastic->wanted, ceiling), bounds->high);
    if (size > view->size)
        elastic->grown_at = now;
    *ret_hold = size < elastic->wanted ? ELASTIC_STARTING : ELASTIC_FREE;
    return size;
}

static size_t shrink(struct elastic *elastic, const struct elastic_bounds *bounds,
                     const struct elastic_view *view, usec_t now)
{
    if (now < usec_add(elastic->enough_since, bounds->idle) || elastic->n_busy >= view->size)
        return view->size;
    elastic->enough_since = elastic->shrunk_at = now;
    return view->size - 1;
}

/* One worker stays, so that jobs do not wait forever. */
static size_t relieve(struct elastic *elastic, const struct elastic_bounds *bounds, size_t size,
                      usec_t now)
{
    const size_t lowest = bounds->low > 0 ? bounds->low : 1, fewer = size - (size + 3) / 4;

    if (size <= lowest)
        return size;
    elastic->enough_since = elastic->shrunk_at = now;
    return fewer > lowest ? fewer : lowest;
}

static void set_hold(struct elastic *elastic, enum elastic_hold hold, usec_t now)
{
    if (elastic->hold != hold)
        elastic->hold_since = now;
    elastic->hold = hold;
}

static usec_t next_look(const struct elastic *elastic, const struct elastic_bounds *bounds,
                        const struct elastic_view *view, size_t size, usec_t now)
{
    const usec_t pause = horizon_of(bounds, view) / 8;
    usec_t next = USEC_INFINITY;

    if (size > bounds->low)
        next = usec_add(elastic->enough_since, bounds->idle);
    if (next <= now)
        next = usec_add(now, bounds->idle); /* all are busy */
    if (elastic->hold == ELASTIC_PRESSURE)
        return usec_min(next, view->pressed_until);
    if (elastic->hold == ELASTIC_SETTLING)
        return usec_min(next, settled_at(elastic, bounds));
    if (view->n_queued > 0 && view->n_queued + view->n_running > size && size < bounds->high)
        next = usec_min(next, usec_add(now, pause > LOOK_MIN ? pause : LOOK_MIN));
    return next;
}

uint64_t elastic_want(struct elastic *elastic, const struct elastic_bounds *bounds,
                      const struct elastic_view *view, usec_t now)
{
    observe(elastic, bounds, view, now);
    elastic->wanted = count_wanted(elastic, bounds, view, now);
    return elastic->wanted;
}

struct elastic_decision elastic_decide(struct elastic *elastic, const struct elastic_bounds *bounds,
                                       const struct elastic_view *view, usec_t now)
{
    enum elastic_hold hold = ELASTIC_FREE;
    size_t size = view->size;

    (void)elastic_want(elastic, bounds, view, now);
    if (elastic->wanted > size && size > 0 && now < view->pressed_until)
        hold = ELASTIC_PRESSURE;
    else if (elastic->wanted > size && may_grow(elastic, bounds, view, now))
        size = grow(elastic, bounds, view, now, &hold);
    if (elastic->wanted >= view->size)
        elastic->enough_since = now;
    else if (size > bounds->low)
        size = shrink(elastic, bounds, view, now);
    if (view->n_reliefs != elastic->n_reliefs)
        size = relieve(elastic, bounds, size, now);
    elastic->n_reliefs = view->n_reliefs;
    if (size > bounds->high)
        size = bounds->high;
    if (elastic->wanted > size && size == bounds->high && hold != ELASTIC_PRESSURE)
        hold = bounds->shared ? ELASTIC_SHARE : ELASTIC_HIGHEST;
    if (size < bounds->low)
        size = bounds->low;
    set_hold(elastic, hold, now);
    return (struct elastic_decision){.size = size,
                                     .next = next_look(elastic, bounds, view, size, now)};
}

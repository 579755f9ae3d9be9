/* SPDX-License-Identifier: MIT */
#include "shared/ring/spin.h"
#include <sched.h>
#include <time.h>

/* The least time that an avoided sleep saves on both sides, in microseconds. */
#define SAVED_MIN 20
/* Between CPUs it is more, especially in virtual machines: this multiple of the cost of waking a
 * peer, which must then still be scheduled. */
#define SAVED_PER_WAKE 4
/* One of this many wake-ups is measured. */
#define MEASURED_PERIOD 16

/* Bounds the balance: after so many failed tries, spinning no longer pays off. */
#define BALANCE_MAX 500
/* The longest pause between two tries, in sleeps. */
#define PAUSE_MAX 1024
/* Every so many finds, the maximum patience is tried. Prime, so that it is tried with all peers
 * that are waited for in turn. */
#define PATIENCE_PERIOD 1021
/* If sched_yield() takes longer, another process has used the CPU. */
#define TAKEN_NSEC 750

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void spin_init(struct spin *spin, uint32_t limit)
{
    *spin = (struct spin){
        .limit = limit < SPIN_USEC_MAX ? limit : SPIN_USEC_MAX,
        .patience = SPIN_PATIENCE_MAX,
    };
}

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t spin_wake_begin(struct spin *spin)
{
    return spin->n_wakes++ % MEASURED_PERIOD == 0 ? nanoseconds(CLOCK_THREAD_CPUTIME_ID) : 0;
}

/* Moves by an eighth of the way: peers on the same CPU cost less than others. */
void spin_woke(struct spin *spin, uint32_t nsec)
{
    spin->wake_nsec += ((int64_t)nsec - spin->wake_nsec) / 8;
}

void spin_wake_end(struct spin *spin, uint64_t begin)
{
    if (begin != 0)
        spin_woke(spin, (uint32_t)(nanoseconds(CLOCK_THREAD_CPUTIME_ID) - begin));
}

static int32_t saved(const struct spin *spin)
{
    int32_t usec = (int32_t)(SAVED_PER_WAKE * spin->wake_nsec / (int64_t)NSEC_PER_USEC);

    return usec > SAVED_MIN ? usec : SAVED_MIN;
}

bool spin_begin(struct spin *spin, usec_t now)
{
    if (spin->limit == 0 || spin->paused < spin->pause) {
        spin->paused++;
        return false;
    }
    spin->paused = 0;
    spin->began = now;
    spin->allowed = spin->n_found % PATIENCE_PERIOD == 0 ? SPIN_PATIENCE_MAX : spin->patience;
    spin->looks = 0;
    spin->offered = spin->taken = false;
    spin->n_taken = 0;
    spin->lent = 0;
    return true;
}

void spin_offered(struct spin *spin, uint64_t nsec)
{
    spin->looks = 0;
    spin->offered = true;
    spin->taken = nsec > TAKEN_NSEC;
    if (spin->taken)
        spin->lent = spin->n_taken++ == 0 ? nsec : 0;
}

static void offer(struct spin *spin)
{
    uint64_t begin = nanoseconds(CLOCK_MONOTONIC);

    (void)sched_yield();
    spin_offered(spin, nanoseconds(CLOCK_MONOTONIC) - begin);
}

bool spin_more(struct spin *spin, usec_t now)
{
    relax();
    if (usec_sub(now, spin->began) >= spin->limit)
        return false;
    if (++spin->looks < spin->allowed)
        return true;
    offer(spin);
    return true;
}

/* Finding something right after yielding means that the peer shares the CPU. */
static void learn_patience(struct spin *spin)
{
    spin->n_found++;
    if (spin->taken && spin->looks == 0)
        spin->patience = (spin->patience + 1) / 2;
    else if (!spin->taken && spin->allowed > spin->patience)
        spin->patience = spin->allowed;
    else if (!spin->taken && spin->patience < SPIN_PATIENCE_MAX)
        spin->patience++;
}

static void keep_account(struct spin *spin, int32_t spent, bool found)
{
    spin->balance += (found ? saved(spin) : 0) - spent;
    if (spin->balance > BALANCE_MAX)
        spin->balance = BALANCE_MAX;
    if (spin->balance >= 0) {
        spin->pause = 0;
        return;
    }
    /* Not reduced further: one successful try is then enough. */
    spin->balance = -1;
    spin->pause = spin->pause == 0 ? 1 : spin->pause * 2;
    if (spin->pause > PAUSE_MAX)
        spin->pause = PAUSE_MAX;
}

void spin_end(struct spin *spin, usec_t now, bool found)
{
    usec_t spent = usec_sub(now, spin->began);

    if (found)
        learn_patience(spin);
    /* Longer than the limit: another process has used the CPU, so the CPU is not idle. */
    if (spent > spin->limit)
        keep_account(spin, (int32_t)spin->limit, false);
    else
        keep_account(spin, (int32_t)usec_sub(spent, spin->lent / NSEC_PER_USEC), found);
}

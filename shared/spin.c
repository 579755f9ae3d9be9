/* SPDX-License-Identifier: MIT */
#include "spin.h"
#include <sched.h>

/* What a sleep that did not happen has saved, both sides together. Cautious: between CPUs it is
 * more, on virtual ones far more. */
#define SAVED 20
/* So much in hand survives a number of tries in vain before it counts as not paying. */
#define BALANCE_MAX 500
/* The longest pause between two tries, in sleeps: what they cost then is nothing. */
#define PAUSE_MAX 1024
/* How often, in finds, patience is learnt anew. */
#define PATIENCE_PERIOD 64

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

bool spin_begin(struct spin *spin, usec_t now)
{
    if (spin->limit == 0 || spin->paused < spin->pause) {
        spin->paused++;
        return false;
    }
    spin->paused = 0;
    spin->began = now;
    spin->looks = 0;
    spin->offered = false;
    return true;
}

bool spin_more(struct spin *spin, usec_t now)
{
    relax();
    if (usec_sub(now, spin->began) >= spin->limit)
        return false;
    if (++spin->looks < spin->patience)
        return true;
    spin->looks = 0;
    spin->offered = true;
    (void)sched_yield();
    return true;
}

/* Who finds something right after having offered the CPU shares it with whom he waits for. */
static void learn_patience(struct spin *spin)
{
    if (++spin->n_found % PATIENCE_PERIOD == 0)
        spin->patience = SPIN_PATIENCE_MAX;
    else if (spin->offered && spin->looks == 0 && spin->patience > 1)
        spin->patience /= 2;
    else if (!spin->offered && spin->patience < SPIN_PATIENCE_MAX)
        spin->patience++;
}

static void keep_account(struct spin *spin, int32_t spent, bool found)
{
    spin->balance += (found ? SAVED : 0) - spent;
    if (spin->balance > BALANCE_MAX)
        spin->balance = BALANCE_MAX;
    if (spin->balance >= 0) {
        spin->pause = 0;
        return;
    }
    /* Debts are not added up: one try that pays is enough to go on. */
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
    /* Longer than the limit: somebody else has had the CPU meanwhile, so it is not idle. */
    if (spent > spin->limit)
        keep_account(spin, (int32_t)spin->limit, false);
    else
        keep_account(spin, (int32_t)spent, found);
}

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The scheduler of the world. Each process of the world is a group of threads of this one, with a
 * descriptor table of their own; only one of all threads runs at a time. A thread gives up its turn
 * where the product would block, and where it may be preempted (wrap.c). Who runs next, when faults
 * happen, and the time, all follow from one seed.
 */

#include "shared/base/clock.h"
#include "shared/base/list.h"
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_NAME_MAX 32

/* In every process: standard error of the world itself, and the epoll(7) of all threads. */
#define SIM_TRACE_FD 1000
#define SIM_POLL     1001
/* An eventfd in the place of timerfds, which tells that the clock was set. */
#define SIM_CLOCK 1002

/* ---- one seed ---- */

void sim_seed(uint64_t seed);
uint64_t sim_random(void);
/* Returns a number of 0 … n - 1; `n` > 0. */
uint64_t sim_below(uint64_t n);
/* Returns true once in `n` calls on average; never with 0. */
bool sim_one_in(uint64_t n);

/* Notes what happens: it is hashed, and printed if `sim_verbose` is set. */
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern bool sim_verbose;
extern uint64_t sim_hash;

/* A promise must hold: else prints which one does not, and ends the seed. */
#define sim_expect(holds, ...) ((holds) ? (void)0 : sim_fail(__VA_ARGS__))
_Noreturn void sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- time ---- */

/* The virtual CLOCK_MONOTONIC. Each reading takes a microsecond, so that loops over it end. */
usec_t sim_now(void);

/* How much the wall clock is ahead of it, and was at first. */
#define SIM_EPOCH (UINT64_C(1700000000) * USEC_PER_SEC)
extern usec_t sim_realtime;
void sim_set_clock(usec_t realtime);

/* ---- processes ---- */

struct sim_process;
typedef void *(*sim_fn)(void *argument);
typedef void (*sim_end_fn)(struct sim_process *process);

struct sim_process {
    char name[SIM_NAME_MAX];
    uint64_t secret; /* a random number, which no other process has */
    void *argument;
    bool dead;      /* it will not run again: */
    bool signalled; /* how it ended */
    int code;
    /* The scheduler's: */
    unsigned n_threads;
    usec_t stopped_until; /* by SIGSTOP, unless it is killed */
    sim_end_fn on_end;
};

/* Starts a process. Its descriptor table is a copy of the caller's. `on_end` is called by the
 * scheduler, between turns; a process without one (NULL) is not killed at fault points. */
struct sim_process *sim_start(const char *name, sim_fn run, void *argument, sim_end_fn on_end);
/* Ends it at its next turn, as if by this signal. Does not return if the caller is of it. */
void sim_kill(struct sim_process *process, int signal);
/* Starts another thread of the calling process. */
pthread_t sim_add_thread(sim_fn run, void *argument);
/* Waits for its end. */
void sim_join_thread(pthread_t id);
/* Ends the calling process. */
_Noreturn void sim_exit(int status);
/* Of the calling thread; NULL in the scheduler. */
extern __thread struct sim_process *sim_self;

/* ---- turns ---- */

/* Gives up the turn; returns at the next one. */
void sim_yield(void);
/* Waits for a span of time. */
void sim_rest(usec_t span);
/* Gives up the turn until a thread ends, or anyone calls sim_wake(), or the time has come. */
void sim_sleep(usec_t deadline);
void sim_wake(void);
/* Likewise until one of the descriptors is ready, as for poll(2). */
void sim_block_fds(const struct pollfd *fds, nfds_t n, usec_t deadline);
/* A place where the product may be interrupted or killed (shared/base/fault.h). */
void sim_fault_point(const char *name);

/* Replaces functions whose effects would be real, or concern the whole world (Makefile). Returns 0.
 */
int sim_nothing(void);

/* Kinds of load and of faults, of which a seed has some: name, and the magnitudes between which a
 * seed draws N, where the chance is one in N (powers of two). The first ones are properties of
 * jobs: REJECT to ENDLESS are what they do instead of succeeding. From PREEMPT on, they are faults:
 * these happen at fault points, from CUT_POWER on at random times, a second apart on average,
 * from ABANDON on with calls. Those from UPGRADE on are the operator's. STOP_WORKER is SIGSTOP, and
 * SIGCONT; DISK_ERROR is EIO; FAIL_CALL is a supervisor that lacks memory or descriptors; REMOVE
 * moves the file of a group away, or back.
 */
#define SIM_FAULTS(X)                                                                              \
    X(LARGE, "large", 0, 4)                                                                        \
    X(UNIQUE, "unique", 0, 3)                                                                      \
    X(AFTER, "after", 0, 4)                                                                        \
    X(DELAY, "delay", 0, 4)                                                                        \
    X(DEADLINE, "deadline", 0, 3)                                                                  \
    X(REJECT, "reject", 0, 4)                                                                      \
    X(RETRY, "retry", 0, 4)                                                                        \
    X(SLOW, "slow", 0, 4)                                                                          \
    X(CRASH, "crash", 2, 6)                                                                        \
    X(STUCK, "stuck", 3, 7)                                                                        \
    X(ENDLESS, "endless", 1, 4)                                                                    \
    X(PREEMPT, "preempt", 1, 6)                                                                    \
    X(STOP_WORKER, "stop-worker", 4, 11)                                                           \
    X(KILL_WORKER, "kill-worker", 4, 11)                                                           \
    X(KILL_SUPERVISOR, "kill-supervisor", 6, 13)                                                   \
    X(KILL_KEEPER, "kill-keeper", 2, 9)                                                            \
    X(DISK_ERROR, "disk-error", 5, 11)                                                             \
    X(FAIL_CALL, "fail-call", 3, 10)                                                               \
    X(CUT_POWER, "cut-power", 1, 5)                                                                \
    X(FILL_DISK, "fill-disk", 1, 5)                                                                \
    X(SET_CLOCK, "set-clock", 0, 4)                                                                \
    X(ABANDON, "abandon", 0, 4)                                                                    \
    X(UPGRADE, "upgrade", 0, 3)                                                                    \
    X(RELOAD, "reload", 0, 3)                                                                      \
    X(REMOVE, "remove", 0, 2)                                                                      \
    X(CANCEL, "cancel", 0, 3)                                                                      \
    X(RESIZE, "resize", 0, 3)                                                                      \
    X(CHANGE_STATE, "change-state", 0, 3)

#define SIM_FAULT_NAME(name, ...) SIM_##name,
enum sim_fault {
    SIM_FAULTS(SIM_FAULT_NAME) _SIM_N_FAULTS
};
extern const char *const sim_fault_names[_SIM_N_FAULTS];

/* Of this seed: chances of one in N; 0 = never. */
extern uint64_t sim_chances[_SIM_N_FAULTS];
/* By this factor, deaths at fault points and failed calls are more likely until this time. */
extern uint64_t sim_strain;
extern usec_t sim_strained_until;
/* Returns the chance as it is now: the factor makes it no likelier than one in `likeliest`. */
uint64_t sim_chance_now(enum sim_fault fault, uint64_t likeliest);
static inline bool sim_has(enum sim_fault fault)
{
    return sim_chances[fault] > 0;
}

/* How many turns there were. */
extern uint64_t sim_n_turns;
/* Runs until the virtual time `until`, or until all processes wait for ever. Returns whether it is
 * the latter. */
bool sim_run(usec_t until);

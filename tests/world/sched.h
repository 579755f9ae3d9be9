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
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_NAME_MAX 32

/* In every process: standard error of the world itself, and the socket through which threads send
 * descriptors to the scheduler. */
#define SIM_TRACE_FD 1000
#define SIM_SOCKET   1001
/* And what shows others that the process lives. */
#define SIM_LIFE 1002

struct sim_process;

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
uint64_t sim_hash(void);

/* ---- time ---- */

/* The virtual CLOCK_MONOTONIC. Each reading takes a microsecond, so that loops over it end. */
usec_t sim_now(void);

/* How much the wall clock is ahead of it. */
extern usec_t sim_realtime;

/* ---- processes ---- */

/* How a process ended. */
struct sim_end {
    bool signalled;
    int code;
};

typedef void (*sim_fn)(void *argument);
typedef void (*sim_end_fn)(struct sim_process *process, const struct sim_end *end);

/* Starts a process. Its descriptor table is a copy of the caller's; `prepare` runs in it at once,
 * while the caller waits, and may close and renumber descriptors. `on_end` is called by the
 * scheduler, between turns; a process without one is not killed at fault points. NULL allowed for
 * both. */
struct sim_process *sim_start(const char *name, sim_fn prepare, sim_fn run, void *argument,
                              sim_end_fn on_end, void *userdata);
void *sim_userdata(const struct sim_process *process);
const char *sim_name(const struct sim_process *process);
/* A random number, which no other process has. */
uint64_t sim_secret(const struct sim_process *process);

/* Ends it at its next turn, as if by this signal. Does not return if the caller is of it. */
void sim_kill(struct sim_process *process, int signal);
/* Stops it until then, unless it is killed. */
void sim_stop(struct sim_process *process, usec_t until);
/* Another thread of the calling process. Returns 0 or ENOMEM. */
int sim_add_thread(pthread_t *ret, sim_fn run, void *argument);
/* Waits for its end. */
void sim_join_thread(pthread_t id);
/* Ends the calling process. */
_Noreturn void sim_exit(int status);
/* Of the calling thread; NULL in the scheduler. */
struct sim_process *sim_self(void);

/* ---- turns ---- */

/* Gives up the turn; returns at the next one. */
void sim_yield(void);
/* The same, but when there was a sim_wake() of this process, or the time has come. The caller looks
 * again. */
void sim_block(usec_t deadline);
/* Waits for a span of time. */
void sim_rest(usec_t span);
/* The same as sim_block(), when `is_ready` returns true, which the scheduler calls. */
void sim_block_until(bool (*is_ready)(const void *argument), const void *argument, usec_t deadline);
/* The same, when the descriptor is readable. */
void sim_block_fd(int fd, usec_t deadline);
/* Has the threads of sim_block() and sim_block_fd() look again. */
void sim_wake(struct sim_process *process);
/* The calling process has closed a descriptor, perhaps one of the above. */
void sim_forget_fds(void);
/* How often it has. */
uint64_t sim_n_closed(void);
/* Between the two, the calling thread keeps its turn. */
void sim_hold(void);
void sim_let_go(void);
/* A place where the product may be interrupted or killed (shared/base/fault.h). */
void sim_fault_point(const char *name);

/* Kinds of faults. A seed has some of them. */
enum sim_fault {
    SIM_PREEMPT, /* at fault points, as the next three */
    SIM_KILL_WORKER,
    SIM_KILL_SUPERVISOR,
    SIM_KILL_KEEPER,
    SIM_DISK_ERROR,   /* EIO */
    SIM_FAIL_CALL,    /* of the supervisor, which lacks memory or descriptors */
    SIM_SHOOT_WORKER, /* at a random time, as what follows */
    SIM_SHOOT_SUPERVISOR,
    SIM_SHOOT_KEEPER,
    SIM_CUT_POWER,
    SIM_FILL_DISK,
    SIM_STOP_WORKER, /* SIGSTOP, and SIGCONT */
    SIM_SET_CLOCK,
    SIM_ABANDON, /* of jobs, by their clients */
    SIM_UPGRADE, /* calls of the operator, as what follows */
    SIM_RELOAD,
    SIM_CANCEL,
    SIM_RESIZE,
    SIM_CHANGE_STATE,
    _SIM_N_FAULTS,
};
extern const char *const sim_fault_names[_SIM_N_FAULTS];

/* Of this seed: chances of one in N; 0 = never. */
extern uint64_t sim_chances[_SIM_N_FAULTS];
static inline bool sim_has(enum sim_fault fault)
{
    return sim_chances[fault] > 0;
}

/* How many turns there were. */
uint64_t sim_n_turns(void);
/* Runs until the virtual time `until`, or until all processes wait for ever. Returns whether it is
 * the latter. */
bool sim_run(usec_t until);

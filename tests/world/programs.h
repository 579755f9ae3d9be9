/* SPDX-License-Identifier: MIT */
#pragma once

/* The programs of the world: workers, clients of the supervisor, and an operator. */

#include "supervisor/keeper/spawn.h"
#include "tests/world/sched.h"
#include <time.h>

#define PROGRAM_VARIABLES 64

/* What a program is started with. */
struct program_start {
    char name[SIM_NAME_MAX];
    char *variables[PROGRAM_VARIABLES];
    size_t n_variables, n_fds;
    struct spawn_fd fds[SPAWN_FDS_MAX];
    bool is_forked; /* the last descriptor is a gate, */
    uint8_t task;   /* through which it shows its number */
};

/* Copies it from the options; the descriptors stay the caller's. */
void program_prepare(struct program_start *ret, const struct spawn_options *options);
/* In the new process. */
void program_main(struct program_start *start);

/* The payload of slots. */
#define PROGRAM_SLOT_DATA "a slot"

/* Closes all descriptors but these, the standard ones and those of the world. */
void program_keep_fds(const struct spawn_fd *fds, size_t n);

/* Starts a client that submits `n_jobs` jobs to a group, and notes their ends in the model. */
void program_start_client(const char *socket_path, const char *group, unsigned n_jobs);
/* How many clients are at work. */
extern unsigned program_n_clients;

/* Has a worker listen to talkers (actors.c). */
struct troupe_worker;
void actors_listen(struct troupe_worker *worker);
/* Starts a client that sends `n` messages of all kinds to a worker. */
void actors_start_talker(const char *socket_path, const char *recipient, unsigned n);

/* Has the operator (operator.c) call random methods of the control socket, with random pauses,
 * until operator_rest(). `n_jobs` bounds the numbers of the jobs that it cancels. */
void operator_start(const char *socket_path, unsigned n_jobs);
/* There is a schedule, tick, with a slot each `period` seconds, and with a last one. */
void operator_watch_schedule(unsigned period, time_t until);
/* Undoes what keeps jobs from ending, then calls nothing any more. Once all is done, it looks
 * whether all workers are up, and nothing is left to do. */
void operator_rest(void);
/* Whether everything was done. */
bool operator_is_done(void);
/* Whether it has looked. */
bool operator_has_checked(void);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Starting processes in tests: by hand, or with a real keeper as the test's parent. */

#include "supervisor/keeper/keeper.h"
#include "supervisor/keeper/spawn.h"

/*
 * spawn(), and then waits until the program runs (0) or the process has reported why not (-errno,
 * and the step in `*ret_step`; it is reaped). `report_fd` of the options is ignored.
 */
int spawn_and_wait(const struct spawn_options *options, struct spawn_result *ret,
                   const char **ret_step);

/* What confines the last one that spawn_and_wait() has started. */
extern struct sandbox_state spawned_state;

/* Waits for its end, reaps it, closes the pidfd. */
struct spawn_exit reap_and_close(const struct spawn_result *result);

/*
 * Makes this process a keeper and returns in the supervisor that it starts, which goes on with the
 * test. It returns again in each supervisor that the keeper starts after a crash. The test's
 * outcome reaches the test runner through the keeper.
 */
struct keeper_ends go_under_keeper(void);
/* The program that the keeper has started: 1, or the new one of an upgrade: 2. */
extern unsigned program_number;
/* Also takes HELD_END, which says that nothing is held. */
struct keeper_ends go_under_new_keeper(void);

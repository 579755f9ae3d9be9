/* SPDX-License-Identifier: MIT */
#pragma once

/* One seed: configuration, load, faults, and whether all ends well. */

#include <stdint.h>
#include <sys/types.h>

#define SCENARIO_PATH_MAX 64

/* Runs a seed, with only these kinds of faults (a bit each). */
void scenario_run(uint64_t seed, uint64_t allowed);
/* The directory of a seed that runs in this process. */
void scenario_directory(pid_t pid, char path[SCENARIO_PATH_MAX]);

/* SPDX-License-Identifier: MIT */
#pragma once

/* One seed: configuration, load, faults, and whether all ends well. */

#include <stdint.h>

/* Runs a seed in a new directory, with only these kinds of faults (a bit each). */
void scenario_run(uint64_t seed, uint64_t allowed, const char *directory);

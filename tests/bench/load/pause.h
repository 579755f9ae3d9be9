/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The pause between two samples, which is a condition of the measurement and waits for nothing: in
 * it the processors fall asleep and what is hot goes cold, as in a system that has little to do.
 */

#include <stdint.h>

/* Returns after that long, whatever signals come meanwhile. */
void pause_usec(uint64_t usec);

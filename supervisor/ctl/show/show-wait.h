/* SPDX-License-Identifier: MIT */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Prints a sentence about what something waits for: an object of the type Wait. */
void show_wait(FILE *file, const json_t *wait);

/* Whether it is an obstacle, which may stay until somebody does something; not a wait for a turn, a
 * time or what has begun. */
bool show_wait_is_obstacle(const json_t *wait);

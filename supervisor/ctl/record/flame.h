/* SPDX-License-Identifier: MIT */
#pragma once

/* Writes the stacks of a profile, the reply of Profile, for programs and people. */

#include <jansson.h>
#include <stdio.h>

/* A frame of this name ends a stack whose thread waits. */
#define FLAME_WAITS "(waits)"

/* Writes a line for each stack: thread and functions, outermost first, with semicolons between, and
 * the number of samples; https://www.brendangregg.com/flamegraphs.html. */
void flame_write_folded(FILE *file, const json_t *profile);

/* Writes a flame graph: a picture in SVG, without scripts, in which each box is a function above
 * its caller, as wide as the number of samples, with a tooltip. Returns 0 or -ENOMEM. */
int flame_write_svg(FILE *file, const json_t *profile);

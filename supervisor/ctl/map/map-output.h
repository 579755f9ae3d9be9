/* SPDX-License-Identifier: MIT */
#pragma once

/* Writes the results of `map`: unchanged, with their input, or as JSON. */

struct options;
struct window_line;

/* Writes the result of a finished line to standard output, followed by a newline or NUL. */
void map_output_write(const struct options *options, const struct window_line *line);

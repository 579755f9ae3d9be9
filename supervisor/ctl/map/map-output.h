/* SPDX-License-Identifier: MIT */
#pragma once

/* Writes the results of `map`: unchanged, with their input, as JSON, or as files. */

struct options;
struct window_line;

/* Writes the result of a finished line, followed by a newline or NUL, to standard output. With an
 * output directory, writes a successful result to a file there, and its path to standard output.
 * Returns 0, or -errno if that file cannot be written. */
int map_output_write(const struct options *options, const char *group,
                     const struct window_line *line);

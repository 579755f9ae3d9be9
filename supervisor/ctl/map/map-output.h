/* SPDX-License-Identifier: MIT */
#pragma once

/* How `map` writes what came of a line: as it is, with its input, or as JSON. */

struct options;
struct window_line;

/* One line (or one NUL-separated piece) on standard output, for a line that is done. */
void map_output_write(const struct options *options, const struct window_line *line);

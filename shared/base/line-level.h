/* SPDX-License-Identifier: MIT */
#pragma once

/* The priority of syslog(3) at the beginning of a line of output, such as "<3>". */

#include <stddef.h>

/* Returns its size, or 0 if the line does not begin with a priority. */
size_t line_level_size(const char *line, size_t size);

/* Removes the priorities from all lines, in place. Returns how many bytes are left. */
size_t line_levels_remove(char *lines, size_t size);

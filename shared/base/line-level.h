/* SPDX-License-Identifier: MIT */
#pragma once

/* The priority that a line of output may begin with, as of syslog(3): "<3>". */

#include <stddef.h>

/* Its size, or 0 if the line begins with something else. */
size_t line_level_size(const char *line, size_t size);

/* Takes the priorities off all lines, in place. Returns how many bytes are left. */
size_t line_levels_remove(char *lines, size_t size);

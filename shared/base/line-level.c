/* SPDX-License-Identifier: MIT */
#include "shared/base/line-level.h"

#define LEVEL_SIZE 3

size_t line_level_size(const char *line, size_t size)
{
    return size >= LEVEL_SIZE && line[0] == '<' && line[1] >= '0' && line[1] <= '7' &&
                   line[2] == '>'
               ? LEVEL_SIZE
               : 0;
}

size_t line_levels_remove(char *lines, size_t size)
{
    size_t left = 0;

    for (size_t i = 0; i < size; i++) {
        if (i == 0 || lines[i - 1] == '\n')
            i += line_level_size(lines + i, size - i);
        if (i < size)
            lines[left++] = lines[i];
    }
    return left;
}

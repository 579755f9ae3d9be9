/* SPDX-License-Identifier: MIT */
#pragma once

/* The columns of top: as many as fit, the less important ones are left out first. */

#include "supervisor/ctl/top/top-rows.h"
#include <stddef.h>

#define TOP_LINE_MAX 1024

/* Writes a line of at most `width` columns (0 = all of them), with marks as in terminal.h. */
void top_header(char line[TOP_LINE_MAX], unsigned width, enum top_sort sort);
void top_line(char line[TOP_LINE_MAX], unsigned width, const struct top_row *row);

/* The supervisor in two lines. */
void top_summary(char first[TOP_LINE_MAX], char second[TOP_LINE_MAX],
                 const struct top_source *source);
/* A death in a line. */
void top_death(char line[TOP_LINE_MAX], const json_t *death);

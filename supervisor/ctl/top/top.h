/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between top.c and top-draw.c: the state of the verb top. */

#include "supervisor/ctl/top/top-rows.h"
#include "supervisor/ctl/top/top-source.h"

struct invocation;

struct top {
    struct invocation *invocation;
    struct top_source source;
    struct top_rows rows;
    struct top_choice choice;
    usec_t interval;
    bool typing; /* the filter */
    char selected[TOP_ADDRESS_MAX];
    size_t at;    /* of the selected row */
    size_t first; /* of the rows on the screen */
    size_t shown; /* how many of them there is room for */
    bool connected, ends;
};

/* Draws the whole picture. */
void top_draw(struct top *top);

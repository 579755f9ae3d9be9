/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between top*.c: the state of the verb top. */

#include "supervisor/ctl/top/top-rows.h"
#include "supervisor/ctl/top/top-source.h"

struct invocation;

enum top_mode {
    TOP_LIST,
    TOP_DETAILS, /* of the selected row */
    TOP_HELP,
};

struct top {
    struct invocation *invocation;
    struct top_source source;
    struct top_processes processes;
    struct top_rows rows;
    struct top_choice choice;
    usec_t interval;
    char filter[64];
    bool typing; /* the filter */
    char selected[TOP_ADDRESS_MAX];
    size_t at;    /* of the selected row */
    size_t first; /* of the rows on the screen */
    size_t shown; /* how many of them there is room for */
    enum top_mode mode;
    char *text;     /* of TOP_DETAILS and TOP_HELP; owned */
    size_t text_at; /* its first line on the screen */
    struct {
        json_t *status; /* of the selected row; NULL = there is no answer */
        json_t *output; /* of a worker; NULL = none */
        bool output_is_next;
    } details;
    char message[512];
    struct {
        char question[TOP_ADDRESS_MAX + 96]; /* "" = nothing is asked */
        char target[TOP_ADDRESS_MAX];
        int key; /* what it is about */
        int64_t size;
    } asked;
    bool connected, ends;
};

/* ---- top-draw.c ---- */

void top_draw(struct top *top);

/* ---- top-keys.c ---- */

/* Does what a key stands for. */
void top_on_key(struct top *top, int key);

/* ---- top-details.c ---- */

/* Makes the text of TOP_DETAILS for the selected row, a `worker` or not. */
void top_show_details(struct top *top, bool worker);
/* Makes it anew. */
void top_refresh_details(struct top *top);
/* Idempotent. */
void top_forget_details(struct top *top);

/* ---- top.c ---- */

/* Makes the rows of what is known now. */
void top_show_rows(struct top *top);

/* ---- top-plain.c ---- */

/* Lines for a pipe or a file; the first data are there. Returns an exit status. */
int top_run_plain(struct top *top);

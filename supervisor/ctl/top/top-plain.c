/* SPDX-License-Identifier: MIT */
/* top without a terminal: a block of lines each time. */

#include "supervisor/ctl/command/interrupt.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/top/top-columns.h"
#include "supervisor/ctl/top/top.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void print_deaths(const struct terminal *out, const json_t *deaths, usec_t *since)
{
    usec_t last = *since;

    for (size_t i = json_array_size(deaths); i-- > 0;) {
        const json_t *death = json_array_get(deaths, i);
        const usec_t at = (usec_t)json_integer_value(json_object_get(death, "at"));
        char line[TOP_LINE_MAX];

        if (at <= *since)
            continue;
        top_death(line, death);
        terminal_print(out, "died: %s", line);
        last = at > last ? at : last;
    }
    *since = last;
}

static void print_block(struct top *top, usec_t *since)
{
    const struct terminal *out = &top->invocation->out;
    char first[TOP_LINE_MAX], second[TOP_LINE_MAX];

    top_summary(first, second, &top->source);
    terminal_print(out, "%s  %s", TIME_OF_DAY(clock_realtime()), first);
    terminal_print(out, "%s", second);
    top_header(first, 0, top->choice.sort);
    terminal_print(out, BOLD "%s" PLAIN, first);
    for (size_t i = 0; i < top->rows.n; i++) {
        top_line(first, 0, &top->rows.items[i]);
        terminal_print(out, "%s", first);
    }
    print_deaths(out, top->source.deaths, since);
    fputc('\n', out->file);
}

/* Returns false if a signal has come. */
static bool wait_until(usec_t at)
{
    while (!interrupt_seen() && clock_now() < at) {
        const struct timespec left = usec_to_timespec(usec_sub(at, clock_now()));

        (void)nanosleep(&left, NULL);
    }
    return !interrupt_seen();
}

/* Returns an exit status. */
static int show_block(struct top *top, usec_t *since)
{
    top_show_rows(top);
    print_block(top, since);
    return fflush(top->invocation->out.file) == 0 ? EXIT_OK : EXIT_FAILED;
}

static int next_block(struct top *top, usec_t *since)
{
    if (top_source_refresh(&top->source) == 0)
        return show_block(top, since);
    complain("%s; trying again", SAFE(top->source.problem));
    return EXIT_OK;
}

/* Deaths from before are not new. */
int top_run_plain(struct top *top)
{
    const int64_t count = top->invocation->options.count;
    usec_t next = clock_now(), since = clock_realtime();
    int r = show_block(top, &since);

    for (int64_t n = 1; r == EXIT_OK && (count == 0 || n < count); n++) {
        next = usec_add(next, top->interval);
        if (!wait_until(next))
            break;
        r = next_block(top, &since);
    }
    return r;
}

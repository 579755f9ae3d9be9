/* SPDX-License-Identifier: MIT */

/* The verb top: groups, cells and workers, as they work. On a terminal a picture with keys, else
 * blocks of lines. */

#include "supervisor/ctl/top/top.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <curses.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL USEC_PER_SEC
/* A hanging supervisor does not keep the screen from answering for longer. */
#define TIMEOUT (5 * USEC_PER_SEC)
/* Asking about very large groups takes at most one part in so many of the time. */
#define SHARE 5
/* The deaths that are shown at most. */
#define DEATHS 10

/* ---- refresh ---- */

static void open_all(struct top *top)
{
    const json_t *groups = json_object_get(top->source.brief, "groups");

    for (size_t i = 0; i < json_array_size(groups); i++)
        (void)json_object_set_new(top->choice.open, field_text(json_array_get(groups, i), "name"),
                                  json_true());
}

/* Puts a reply in the place of the one before. */
static int take(int r, json_t **place, json_t *reply)
{
    if (r == EXIT_OK) {
        json_decref(*place);
        *place = reply;
    }
    return r;
}

/* Counters begin again in another supervisor. */
static int refresh_groups(struct top *top)
{
    struct top_source *source = &top->source;
    const int64_t started_at = field_int(source->info, "started_at");
    const usec_t now = clock_now();
    json_t *reply;
    bool same;
    int r = call(top->invocation, CALL_SUPERVISOR "GetInfo", json_object(), false, &reply);

    r = take(r, &source->info, reply);
    if (r == EXIT_OK)
        r = parts_of_status(top->invocation, NULL, true, &reply);
    if (r != EXIT_OK)
        return r;
    same = source->brief && field_int(source->info, "started_at") == started_at;
    (void)take(r, &source->before, same ? json_incref(source->brief) : NULL);
    source->elapsed = same ? usec_sub(now, source->at) : 0;
    source->at = now;
    return take(r, &source->brief, reply);
}

/* Asks for the open group that exists, or if there are several, for all groups. */
static int refresh_status(struct top *top)
{
    const json_t *groups = json_object_get(top->source.brief, "groups");
    const char *target = NULL;
    json_t *status = NULL;
    size_t n = 0;
    int r;

    for (size_t i = 0; i < json_array_size(groups); i++) {
        const char *name = field_text(json_array_get(groups, i), "name");

        if (json_object_get(top->choice.open, name))
            target = n++ > 0 ? NULL : name;
    }
    if (n == 0)
        return EXIT_OK;
    r = parts_of_status(top->invocation, target, false, &status);
    return take(r, &top->source.status, status);
}

static int refresh_deaths(struct top *top)
{
    json_t *deaths = NULL;
    int r = call(top->invocation, CALL_SUPERVISOR "ListDeaths", json_pack("{s:i}", "limit", DEATHS),
                 false, &deaths);

    return take(r, &top->source.deaths, deaths);
}

/* What does not come stays as it was. Returns an exit status. */
static int refresh_all(struct top *top)
{
    struct top_source *source = &top->source;
    int r;

    source->problem[0] = '\0';
    complain_into(source->problem, sizeof(source->problem));
    r = refresh_groups(top);
    if (r == EXIT_OK)
        r = refresh_deaths(top);
    if (r == EXIT_OK)
        r = refresh_status(top);
    complain_into(NULL, 0);
    top_rows_build(&top->rows, source, &top->choice);
    return r;
}

/* Refreshes, and returns when to do so again. */
static usec_t refresh_at(struct top *top, usec_t now)
{
    usec_t pause;

    (void)refresh_all(top);
    pause = SHARE * usec_sub(clock_now(), now);
    return usec_add(now, pause > top->interval ? pause : top->interval);
}

/* ---- keys ---- */

static void move_by(struct top *top, long rows)
{
    const long n = (long)top->rows.n, at = (long)top->at + rows;

    if (n == 0)
        return;
    top->at = (size_t)(at < 0 ? 0 : at >= n ? n - 1 : at);
    (void)snprintf(top->selected, sizeof(top->selected), "%s", top->rows.items[top->at].address);
}

static const struct top_row *selected(const struct top *top)
{
    return top->at < top->rows.n ? &top->rows.items[top->at] : NULL;
}

static void set_open(struct top *top, bool open)
{
    const struct top_row *row = selected(top);

    if (!row || !row->may_open || row->open == open)
        return;
    if (open)
        (void)json_object_set_new(top->choice.open, row->address, json_true());
    else
        (void)json_object_del(top->choice.open, row->address);
    (void)refresh_all(top);
}

#define KEY_ESCAPE 27

static void on_filter_key(struct top *top, int key)
{
    char *filter = top->choice.filter;
    const size_t size = strlen(filter);

    if (key == '\n' || key == KEY_ENTER || key == KEY_ESCAPE)
        top->typing = false;
    if (key == KEY_ESCAPE)
        filter[0] = '\0';
    else if ((key == KEY_BACKSPACE || key == 0x7f || key == '\b') && size > 0)
        filter[size - 1] = '\0';
    else if (key > ' ' && key < 0x7f && size + 1 < sizeof(top->choice.filter))
        (void)snprintf(filter + size, sizeof(top->choice.filter) - size, "%c", (char)key);
}

static void on_list_key(struct top *top, int key)
{
    const long page = top->shown > 1 ? (long)top->shown - 1 : 1;

    switch (key) {
    case 'q':
        top->ends = true;
        break;
    case '/':
        top->typing = true;
        break;
    case KEY_ESCAPE:
        top->choice.filter[0] = '\0';
        break;
    case '>':
        top->choice.sort = (top->choice.sort + 1) % _TOP_N_SORTS;
        break;
    case ' ':
        set_open(top, selected(top) && !selected(top)->open);
        break;
    case KEY_RIGHT:
        set_open(top, true);
        break;
    case KEY_LEFT:
        set_open(top, false);
        break;
    case KEY_UP:
        move_by(top, -1);
        break;
    case KEY_DOWN:
        move_by(top, 1);
        break;
    case KEY_PPAGE:
        move_by(top, -page);
        break;
    case KEY_NPAGE:
        move_by(top, page);
        break;
    case KEY_HOME:
        move_by(top, -(long)top->rows.n);
        break;
    case KEY_END:
        move_by(top, (long)top->rows.n);
        break;
    default:
        break;
    }
}

static void on_key(struct top *top, int key)
{
    top->ends |= key == TOP_KEY_GONE;
    if (key == TOP_KEY_GONE || key == ERR)
        return;
    if (top->typing)
        on_filter_key(top, key);
    else
        on_list_key(top, key);
    top_rows_build(&top->rows, &top->source, &top->choice);
}

/* ---- on a terminal ---- */

static int milliseconds_until(usec_t at)
{
    return (int)(usec_sub(at, clock_now()) / USEC_PER_MSEC) + 1;
}

/* The first data are there. */
static void run_screen(struct top *top)
{
    const int64_t count = top->invocation->options.count;
    usec_t next = usec_add(clock_now(), top->interval);

    for (int64_t n = 1; !top->ends && !interrupt_seen();) {
        if (clock_now() >= next) {
            if (count > 0 && n++ >= count)
                break;
            next = refresh_at(top, clock_now());
        }
        top_screen_draw(top);
        on_key(top, top_screen_key(milliseconds_until(next)));
    }
}

/* ---- lines ---- */

/* Prints deaths since `*since`. */
static void print_deaths(const struct terminal *out, const json_t *deaths, usec_t *since)
{
    const usec_t begin = *since;

    for (size_t i = json_array_size(deaths); i-- > 0;) {
        const json_t *death = json_array_get(deaths, i);
        const usec_t at = field_usec(death, "at");
        char line[TOP_LINE_MAX];

        if (at <= begin)
            continue;
        top_death(line, death);
        terminal_print(out, "died: %s", line);
        *since = at > *since ? at : *since;
    }
}

static int print_block(struct top *top, usec_t *since)
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
    print_deaths(out, json_object_get(top->source.deaths, "deaths"), since);
    fputc('\n', out->file);
    return fflush(out->file) == 0 ? EXIT_OK : EXIT_FAILED;
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

/* The first data are there. Deaths from before are not new. Returns an exit status. */
static int print_blocks(struct top *top)
{
    const int64_t count = top->invocation->options.count;
    usec_t next = usec_add(clock_now(), top->interval), since = clock_realtime();
    int r = print_block(top, &since);

    for (int64_t n = 1; r == EXIT_OK && (count == 0 || n < count) && wait_until(next); n++) {
        next = refresh_at(top, clock_now());
        if (*top->source.problem == '\0')
            r = print_block(top, &since);
        else
            complain("%s; trying again", SAFE(top->source.problem));
    }
    return r;
}

/* ---- the verb ---- */

static int run(struct top *top)
{
    const struct invocation *invocation = top->invocation;
    int r;

    if (invocation->options.json) {
        complain("top prints no JSON: see 'troupectl metrics --json'");
        return EXIT_USAGE;
    }
    r = refresh_all(top);
    if (r == EXIT_OK && invocation->options.all) {
        open_all(top);
        r = refresh_all(top);
    }
    if (r != EXIT_OK) {
        complain("%s", top->source.problem);
        return r;
    }
    interrupt_catch();
    if (!invocation->out.is_terminal || isatty(STDIN_FILENO) != 1 ||
        !top_screen_open(&invocation->out))
        return print_blocks(top);
    interrupt_before_exit(top_screen_abandon);
    run_screen(top);
    interrupt_before_exit(NULL);
    top_screen_close();
    return interrupt_seen() ? EXIT_INTERRUPTED : EXIT_OK;
}

int verb_top(struct invocation *invocation)
{
    struct options *options = &invocation->options;
    struct top top = {.invocation = invocation,
                      .interval = options->interval > 0 ? options->interval : INTERVAL,
                      .choice.open = json_object()};
    int r;

    if (options->timeout == 0)
        options->timeout = TIMEOUT;
    r = top.choice.open ? run(&top) : call_no_memory();
    top_rows_deinit(&top.rows);
    json_decref(top.source.info);
    json_decref(top.source.brief);
    json_decref(top.source.before);
    json_decref(top.source.status);
    json_decref(top.source.deaths);
    json_decref(top.choice.open);
    return r;
}

/* SPDX-License-Identifier: MIT */
/* The actions of the keys of top. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/top/top-columns.h"
#include "supervisor/ctl/top/top-screen.h"
#include "supervisor/ctl/top/top.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char HELP[] =
    "Keys\n"
    "\n"
    "  Up Down PgUp PgDn Home End   choose a row\n"
    "  Space Right Left             open and close a group or a cell\n"
    "  Enter                        details of the row\n"
    "  /                            filter by a part of the name; Esc forgets it\n"
    "  >                            the next column to sort by\n"
    "  N Q O R T D C M              sort by name, queue, oldest job, rate, run time, deaths, CPU,\n"
    "                               memory\n"
    "  I                            the other way round\n"
    "  p                            pause or resume the group or cell\n"
    "  k                            kill the worker and start it again; its job is queued again\n"
    "  + -                          one worker more or less\n"
    "  ?                            this help\n"
    "  q                            quit\n"
    "\n"
    "Columns\n"
    "\n"
    "  UP       workers that are idle or busy, of all with their standbys\n"
    "  OLDEST   how long the oldest queued job has waited\n"
    "  JOBS/S   jobs that ended per second since it was last asked for: those on the screen are\n"
    "           asked for every second, the others of a large group in turn\n"
    "  WAIT99   99 % of these waited for a worker at most as long\n"
    "  RUN99    and worked at most as long; of a worker: its job so far\n"
    "  DEATHS   unexpected ends of workers; of a worker: its restarts\n"
    "  CPU%     of one processor, and MEMORY: of workers, also summed up, while a group is open\n";

static struct top_row *selected(struct top *top)
{
    return top->at < top->rows.n ? &top->rows.items[top->at] : NULL;
}

static void say(struct top *top, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct top *top, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(top->message, sizeof(top->message), format, arguments);
    va_end(arguments);
}

/* ---- the rows ---- */

static void rebuild(struct top *top)
{
    top->choice.filter = top->filter;
    top_rows_build(&top->rows, &top->source, &top->processes, &top->choice);
}

static void move_by(struct top *top, long rows)
{
    const long n = (long)top->rows.n, at = (long)top->at + rows;

    if (n == 0)
        return;
    top->at = (size_t)(at < 0 ? 0 : at >= n ? n - 1 : at);
    (void)snprintf(top->selected, sizeof(top->selected), "%s", top->rows.items[top->at].address);
}

static void set_open(struct top *top, bool open)
{
    const struct top_row *row = selected(top);

    if (!row || !row->may_open || row->open == open)
        return;
    if (open && row->kind == TOP_GROUP && top_source_open(&top->source, row->group) < 0)
        say(top, "%s", SAFE(top->source.problem));
    if (open)
        (void)json_object_set_new(top->choice.open, row->address, json_true());
    else
        (void)json_object_del(top->choice.open, row->address);
    rebuild(top);
}

static void sort_by(struct top *top, enum top_sort sort)
{
    top->choice.sort = sort;
    say(top, "sorted by %s", top_sort_name(sort));
    rebuild(top);
}

/* ---- details and help ---- */

static void show_text(struct top *top, enum top_mode mode)
{
    const struct top_row *row = selected(top);

    free(top->text);
    top->text = mode == TOP_HELP ? strdup(HELP) : NULL;
    top->text_at = 0;
    top->mode = mode;
    if (mode == TOP_DETAILS)
        top_show_details(top, row && row->kind == TOP_WORKER);
}

static size_t count_lines(const char *text)
{
    size_t n = 0;

    for (; text && *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void on_text_key(struct top *top, int key)
{
    const size_t page = top_screen_height() > 2 ? top_screen_height() - 2 : 1;
    const size_t n = count_lines(top->text);

    switch (key) {
    case TOP_KEY_UP:
        top->text_at -= top->text_at > 0;
        break;
    case TOP_KEY_DOWN:
        top->text_at += top->text_at + 1 < n;
        break;
    case TOP_KEY_PAGE_UP:
        top->text_at -= top->text_at > page ? page : top->text_at;
        break;
    case TOP_KEY_PAGE_DOWN:
        top->text_at += top->text_at + page < n ? page : 0;
        break;
    case TOP_KEY_ESCAPE:
    case TOP_KEY_ENTER:
    case TOP_KEY_LEFT:
        top->mode = TOP_LIST;
        break;
    case 'q':
        top->ends = true;
        break;
    default:
        break;
    }
}

/* ---- changes ---- */

static bool change(struct top *top, const char *method, json_t *parameters)
{
    if (top_source_call(&top->source, method, parameters, NULL) == 0)
        return true;
    say(top, RED "%s" PLAIN, SAFE(top->source.problem));
    return false;
}

static void pause_or_resume(struct top *top)
{
    const struct top_row *row = selected(top);
    const bool paused = row && strcmp(row->state, "paused") == 0;

    if (!row || row->kind == TOP_WORKER) {
        say(top, "only groups and cells can be paused");
        return;
    }
    if (change(top, paused ? "Resume" : "Pause", json_pack("{s:s}", "target", row->address)))
        say(top, "%s is %s", SAFE(row->address), paused ? "resumed" : "paused");
}

static void ask(struct top *top, int key, const struct top_row *row, int64_t size)
{
    top->asked.key = key;
    top->asked.size = size;
    (void)snprintf(top->asked.target, sizeof(top->asked.target), "%s", row->address);
    if (key == 'k')
        (void)snprintf(top->asked.question, sizeof(top->asked.question),
                       "Kill %s and start it again? Its job is queued again", SAFE(row->address));
    else
        (void)snprintf(top->asked.question, sizeof(top->asked.question),
                       "Resize %s to %" PRId64 " worker%s?", SAFE(row->address), size,
                       plural((uint64_t)size));
}

static void ask_for_size(struct top *top, int by)
{
    const struct top_row *row = selected(top);
    int64_t size;

    if (!row || row->kind == TOP_WORKER) {
        say(top, "only groups and cells have a size");
        return;
    }
    size = field_int(row->object, "size") + by;
    if (size < 1)
        say(top, "the smallest size is 1");
    else
        ask(top, '+', row, size);
}

static void ask_to_kill(struct top *top)
{
    const struct top_row *row = selected(top);

    if (!row || row->kind != TOP_WORKER)
        say(top, "choose a worker: Space opens a group");
    else
        ask(top, 'k', row, 0);
}

static void kill_worker(struct top *top, const char *worker)
{
    if (change(top, "Stop", json_pack("{s:s, s:i}", "target", worker, "within_usec", 1)) &&
        change(top, "Start", json_pack("{s:s}", "target", worker)))
        say(top, "%s is being killed and started again", SAFE(worker));
}

static void resize(struct top *top, const char *target, int64_t size)
{
    if (change(top, "Resize", json_pack("{s:s, s:I}", "target", target, "size", (json_int_t)size)))
        say(top, "%s gets %" PRId64 " worker%s", SAFE(target), size, plural((uint64_t)size));
}

static void on_answer(struct top *top, int key)
{
    top->asked.question[0] = '\0';
    if (key != 'y' && key != 'Y')
        say(top, "nothing is changed");
    else if (top->asked.key == 'k')
        kill_worker(top, top->asked.target);
    else
        resize(top, top->asked.target, top->asked.size);
}

/* ---- the keys ---- */

static void on_filter_key(struct top *top, int key)
{
    size_t size = strlen(top->filter);

    if (key == TOP_KEY_ENTER || key == TOP_KEY_ESCAPE)
        top->typing = false;
    if (key == TOP_KEY_ESCAPE)
        top->filter[0] = '\0';
    else if (key == TOP_KEY_BACKSPACE && size > 0)
        top->filter[size - 1] = '\0';
    else if (key > ' ' && key < 0x7f && size + 1 < sizeof(top->filter))
        (void)snprintf(top->filter + size, sizeof(top->filter) - size, "%c", (char)key);
    rebuild(top);
}

static const struct {
    char key;
    enum top_sort sort;
} SORT_KEYS[] = {
    {'N', TOP_BY_NAME}, {'Q', TOP_BY_QUEUE},  {'O', TOP_BY_AGE}, {'R', TOP_BY_RATE},
    {'T', TOP_BY_RUN},  {'D', TOP_BY_DEATHS}, {'C', TOP_BY_CPU}, {'M', TOP_BY_MEMORY},
};

static void on_other_key(struct top *top, int key)
{
    for (size_t i = 0; i < ELEMENTS(SORT_KEYS); i++)
        if (key == SORT_KEYS[i].key)
            sort_by(top, SORT_KEYS[i].sort);
}

static void on_row_key(struct top *top, int key)
{
    const struct top_row *row = selected(top);
    const long page = top->shown > 1 ? (long)top->shown - 1 : 1;

    switch (key) {
    case TOP_KEY_UP:
        return move_by(top, -1);
    case TOP_KEY_DOWN:
        return move_by(top, 1);
    case TOP_KEY_PAGE_UP:
        return move_by(top, -page);
    case TOP_KEY_PAGE_DOWN:
        return move_by(top, page);
    case TOP_KEY_HOME:
        return move_by(top, -(long)top->rows.n);
    case TOP_KEY_END:
        return move_by(top, (long)top->rows.n);
    case TOP_KEY_RIGHT:
        return set_open(top, true);
    case TOP_KEY_LEFT:
        return set_open(top, false);
    case ' ':
        return set_open(top, row && !row->open);
    case TOP_KEY_ENTER:
        return row ? show_text(top, TOP_DETAILS) : (void)0;
    default:
        return on_other_key(top, key);
    }
}

static void on_list_key(struct top *top, int key)
{
    switch (key) {
    case 'q':
        top->ends = true;
        return;
    case '?':
    case 'h':
        return show_text(top, TOP_HELP);
    case '/':
        top->typing = true;
        return;
    case TOP_KEY_ESCAPE:
        top->filter[0] = '\0';
        return rebuild(top);
    case '>':
        return sort_by(top, (top->choice.sort + 1) % _TOP_N_SORTS);
    case 'I':
        top->choice.reverse = !top->choice.reverse;
        return rebuild(top);
    case 'p':
        return pause_or_resume(top);
    case 'k':
        return ask_to_kill(top);
    case '+':
        return ask_for_size(top, 1);
    case '-':
        return ask_for_size(top, -1);
    default:
        return on_row_key(top, key);
    }
}

void top_on_key(struct top *top, int key)
{
    top->ends |= key == TOP_KEY_GONE;
    if (key == TOP_KEY_GONE || key == TOP_KEY_NONE || key == TOP_KEY_RESIZE)
        return;
    top->message[0] = '\0';
    if (*top->asked.question != '\0')
        on_answer(top, key);
    else if (top->mode != TOP_LIST)
        on_text_key(top, key);
    else if (top->typing)
        on_filter_key(top, key);
    else
        on_list_key(top, key);
}

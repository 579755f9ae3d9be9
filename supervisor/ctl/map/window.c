/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/map/window.h"

#include "shared/base/cleanup.h"
#include <string.h>

/* A line frees its buffer if that is larger. */
#define KEEP_ALLOCATED ((size_t)64 << 10)

/* While the group is stopping, and while the supervisor has no room for another job of this user.
 */
#define HOLD_STOPPING USEC_PER_SEC
#define HOLD_BUSY     (100 * USEC_PER_MSEC)

int window_init(struct window *window, size_t size)
{
    *window = (struct window){.size = size};
    window->lines = calloc(size, sizeof(*window->lines));
    return window->lines ? 0 : -ENOMEM;
}

static struct window_line *line_at(const struct window *window, uint64_t number)
{
    return &window->lines[number % window->size];
}

static void free_line(struct window_line *line)
{
    if (line->state == WINDOW_DONE)
        troupe_result_release(&line->result);
    free(line->copy);
    line->copy = NULL;
    line->state = WINDOW_FREE;
    if (line->allocated > KEEP_ALLOCATED) {
        free(line->input);
        line->input = NULL;
        line->allocated = 0;
    }
}

void window_deinit(struct window *window)
{
    for (size_t i = 0; window->lines && i < window->size; i++) {
        free_line(&window->lines[i]);
        free(window->lines[i].input);
    }
    free(window->lines);
    *window = (struct window){0};
}

static int detach_line(struct window_line *line)
{
    const struct troupe_result *result = &line->result;
    const size_t reason_size = strlen(result->reason) + 1, size = result->size;

    line->copy = malloc(size + reason_size);
    if (!line->copy)
        return -ENOMEM;
    memcpy(line->copy, result->data, size);
    memcpy(line->copy + size, result->reason, reason_size);
    troupe_result_release(&line->result);
    line->result.data = line->copy;
    line->result.size = size;
    line->result.reason = line->copy + size;
    return 0;
}

int window_detach(struct window *window)
{
    for (uint64_t number = window->first; number < window->next; number++) {
        struct window_line *line = line_at(window, number);
        int r = line->state == WINDOW_DONE && !line->copy ? detach_line(line) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

bool window_full(const struct window *window)
{
    return window->next - window->first == window->size;
}

bool window_empty(const struct window *window)
{
    return window->next == window->first;
}

int window_add(struct window *window, const char *input, size_t size)
{
    struct window_line *line = line_at(window, window->next);

    if (size + 1 > line->allocated) {
        char *larger = realloc(line->input, size + 1);

        if (!larger)
            return -ENOMEM;
        line->input = larger;
        line->allocated = size + 1;
    }
    memcpy(line->input, input, size);
    line->input[size] = '\0';
    line->size = size;
    line->awaited = line->repeated = false;
    line->state = WINDOW_READY;
    line->number = window->next++;
    return 0;
}

static bool window_has_ready(struct window *window)
{
    if (window->search < window->first)
        window->search = window->first;
    while (window->search < window->next && line_at(window, window->search)->state != WINDOW_READY)
        window->search++;
    return window->search < window->next;
}

struct window_line *window_ready(struct window *window, usec_t now)
{
    if (now < window->hold || !window_has_ready(window))
        return NULL;
    return line_at(window, window->search);
}

void window_submitted(struct window *window, struct window_line *line)
{
    line->state = WINDOW_SUBMITTED;
    window->n_submitted++;
}

static void make_ready_again(struct window *window, struct window_line *line)
{
    line->state = WINDOW_READY;
    if (window->search > line->number)
        window->search = line->number;
}

static void doubted(struct window *window, struct window_line *line)
{
    line->state = WINDOW_DOUBTFUL;
    window->n_doubtful++;
    if (window->doubt > line->number)
        window->doubt = line->number;
}

static void became_unknown(struct window_line *line)
{
    line->result.error = -ECONNRESET;
    memcpy(line->result.id, line->id, sizeof(line->id));
}

/* Whether the line is not done yet. Returns WINDOW_E_*, or 0. */
static int put_back(struct window *window, struct window_line *line, int error, usec_t now)
{
    if (error == -ESHUTDOWN && window->durable)
        window->hold = now + HOLD_STOPPING;
    if (error == -EBUSY && window->patient && !line->awaited)
        window->hold = now + HOLD_BUSY;
    if (((error == -ESHUTDOWN && window->durable) || (error == -EBUSY && window->patient)) &&
        !line->awaited) {
        make_ready_again(window, line);
        return WINDOW_E_REFUSED;
    }
    if (error == -ESRCH && window->repeats && line->awaited) {
        line->awaited = false;
        line->repeated = true;
        make_ready_again(window, line);
        return WINDOW_E_REFUSED;
    }
    /* -EBUSY: the supervisor looks for as many jobs as it can. */
    if (error == -ECONNRESET || (error == -EBUSY && line->awaited) ||
        (error == -ESHUTDOWN && window->durable) || (error == -EEXIST && line->repeated)) {
        doubted(window, line);
        return WINDOW_E_DOUBTFUL;
    }
    return 0;
}

int window_ended(struct window *window, const struct troupe_result *result, usec_t now)
{
    struct window_line *line = line_at(window, result->cookie);
    int r;

    if (result->cookie < window->first || result->cookie >= window->next ||
        line->state != WINDOW_SUBMITTED)
        return WINDOW_E_STRANGE;
    window->n_submitted--;
    r = put_back(window, line, result->error, now);
    if (r != 0)
        return r;
    line->state = WINDOW_DONE;
    line->result = *result;
    if (result->error < 0 && (line->awaited || line->repeated)) {
        if (result->error == -ESRCH)
            line->result.reason = ""; /* it was in the supervisor that is gone */
        became_unknown(line);
    }
    return 0;
}

struct window_line *window_doubtful(struct window *window)
{
    if (window->n_doubtful == 0)
        return NULL;
    if (window->doubt < window->first)
        window->doubt = window->first;
    while (line_at(window, window->doubt)->state != WINDOW_DOUBTFUL)
        window->doubt++;
    return line_at(window, window->doubt);
}

void window_awaited(struct window *window, struct window_line *line)
{
    line->awaited = true;
    window->n_doubtful--;
    window_submitted(window, line);
}

void window_lose(struct window *window)
{
    struct window_line *line;

    while ((line = window_doubtful(window))) {
        window->n_doubtful--;
        line->state = WINDOW_DONE;
        line->result = (struct troupe_result){.cookie = line->number, .reason = "", .data = ""};
        became_unknown(line);
    }
}

const struct window_line *window_front(const struct window *window)
{
    const struct window_line *line = line_at(window, window->first);

    return !window_empty(window) && line->state == WINDOW_DONE ? line : NULL;
}

/* Lines that were given up have no result. */
static void skip_free(struct window *window)
{
    while (window->first < window->next && line_at(window, window->first)->state == WINDOW_FREE)
        window->first++;
}

void window_drop(struct window *window)
{
    free_line(line_at(window, window->first));
    skip_free(window);
}

size_t window_give_up(struct window *window)
{
    size_t n = 0;

    for (; window_has_ready(window); n++)
        free_line(line_at(window, window->search));
    skip_free(window);
    return n;
}

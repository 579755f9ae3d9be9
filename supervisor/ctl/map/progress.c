/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/map/progress.h"

#include "supervisor/ctl/text/format.h"
#include <string.h>

#define INTERVAL  (100 * USEC_PER_MSEC)
#define BAR_WIDTH 24
/* The weight of the newest interval in the smoothed rate. */
#define SMOOTHING 0.08

void progress_init(struct progress *progress, const char *title, bool quiet, usec_t now)
{
    *progress = (struct progress){.title = title, .started_at = now, .shown_at = now};
    terminal_init(&progress->terminal, stderr);
    progress->enabled = progress->terminal.is_terminal && !quiet;
}

static usec_t progress_left(double position, usec_t elapsed)
{
    if (position <= 0.001 || elapsed < USEC_PER_SEC / 2)
        return USEC_INFINITY;
    return position >= 1 ? 0 : (usec_t)((double)elapsed * (1 - position) / position);
}

static void measure_rate(struct progress *progress, uint64_t done, usec_t now)
{
    double seconds = (double)(now - progress->shown_at) / (double)USEC_PER_SEC;
    double rate = (double)(done - progress->shown_done) / seconds;

    progress->rate =
        progress->rate > 0 ? progress->rate * (1 - SMOOTHING) + rate * SMOOTHING : rate;
    progress->shown_done = done;
    progress->shown_at = now;
}

static char *draw_bar(char *buffer, size_t size, double position)
{
    unsigned full = (unsigned)(position * BAR_WIDTH + 0.5);
    size_t used = 0;

    used += (size_t)snprintf(buffer + used, size - used, "%s", GREEN);
    for (unsigned i = 0; i < full; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s", "━");
    used += (size_t)snprintf(buffer + used, size - used, "%s", PLAIN DIM);
    for (unsigned i = full; i < BAR_WIDTH; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s", "─");
    snprintf(buffer + used, size - used, "%s %3.0f%%  ", PLAIN, position * 100);
    return buffer;
}

static void show(const struct progress *progress, const struct progress_counts *counts, usec_t now)
{
    usec_t elapsed = now - progress->started_at;
    usec_t left = progress_left(counts->position, elapsed);
    char bar[BAR_WIDTH * 4 + 64] = "", failed[96] = "", retried[96] = "";

    if (counts->position >= 0)
        draw_bar(bar, sizeof(bar), counts->position);
    if (counts->failed > 0)
        snprintf(failed, sizeof(failed), ", " RED "%s failed" PLAIN, COUNT(counts->failed));
    if (counts->retried > 0)
        snprintf(retried, sizeof(retried), ", " YELLOW "%s retried" PLAIN, COUNT(counts->retried));
    fputs("\r", stderr);
    terminal_print_over(&progress->terminal, "%s  %s%s done%s%s  %s/s  %s%s%s", progress->title,
                        bar, COUNT(counts->done), failed, retried, COUNT((uint64_t)progress->rate),
                        left == USEC_INFINITY ? SPAN(elapsed) : SPAN(left),
                        left == USEC_INFINITY ? "" : " left",
                        counts->queue_full ? "  " YELLOW "queue full" PLAIN : "");
    fputs("\033[K", stderr);
    fflush(stderr);
}

void progress_update(struct progress *progress, const struct progress_counts *counts, usec_t now)
{
    if (!progress->enabled || now - progress->shown_at < INTERVAL)
        return;
    terminal_measure(&progress->terminal);
    measure_rate(progress, counts->done, now);
    show(progress, counts, now);
    progress->visible = true;
}

void progress_hide(struct progress *progress)
{
    if (!progress->visible)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    progress->visible = false;
}

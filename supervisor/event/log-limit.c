/* SPDX-License-Identifier: MIT */
#include "supervisor/event/log-limit.h"

#include "shared/base/cleanup.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Entries that a key may use. */
#define WAYS        4u
#define TEXT_SIZE   256
#define SUBJECT_MAX 80

struct log_limit {
    struct list link; /* in pending */
    uint64_t key;
    usec_t since; /* beginning of the window */
    unsigned n;   /* lines within it, the unwritten ones too */
    uint64_t n_left_out;
    bool flooded; /* the window before was too full: this one is written as its summary only */
    enum log_level level;
    const char *kind;
    char subject[SUBJECT_MAX];
    char text[TEXT_SIZE]; /* of the latest line left out */
};

static usec_t window_end(const struct log_limit *limit)
{
    return usec_add(limit->since, LOG_LIMIT_WINDOW);
}

/* ---- summing up ---- */

static void sum_up(struct log_limit *limit)
{
    const struct log_fields fields =
        LOG_FIELDS({"TROUPE_GROUP", limit->subject[0] != '\0' ? limit->subject : NULL},
                   {"TROUPE_EVENT", limit->kind});

    if (limit->n_left_out == 1)
        log_write(limit->level, fields, "%s", limit->text);
    else
        log_write(limit->level, fields, "%s%s%llu more like this in %llu s, the latest: %s",
                  limit->subject, limit->subject[0] != '\0' ? ": " : "",
                  (unsigned long long)limit->n_left_out,
                  (unsigned long long)(LOG_LIMIT_WINDOW / USEC_PER_SEC), limit->text);
    limit->n_left_out = 0;
    list_unlink(&limit->link);
}

/* Goes on to the window of `now`. A flood ends with a window that it does not fill. */
static void advance(struct log_limit *limit, usec_t now)
{
    const usec_t end = window_end(limit);
    const bool is_next = now < usec_add(end, LOG_LIMIT_WINDOW);

    if (now < end)
        return;
    if (limit->n_left_out > 0)
        sum_up(limit);
    limit->flooded = is_next && limit->n > LOG_LIMIT_BURST;
    limit->since = is_next ? end : now;
    limit->n = 0;
}

static void arm(struct log_limits *limits)
{
    usec_t at = USEC_INFINITY;

    list_for_each (node, &limits->pending) {
        const usec_t end = window_end(list_entry(node, struct log_limit, link));

        at = end < at ? end : at;
    }
    /* Without memory for the timer the summary comes with the next line. */
    (void)timer_arm(loop_timers(limits->loop), &limits->timer, at);
}

static void on_timer(struct timer *timer, usec_t now)
{
    struct log_limits *limits = list_entry(timer, struct log_limits, timer);

    list_for_each_safe (node, &limits->pending)
        advance(list_entry(node, struct log_limit, link), now);
    arm(limits);
}

/* ---- finding ---- */

static uint64_t key_of(const struct log_line *line)
{
    const uint64_t subject = line->subject ? index_key(line->subject, strlen(line->subject)) : 0;
    const uint64_t parts[] = {subject, (uint64_t)(uintptr_t)line->kind, line->level, line->id};

    return index_key(parts, sizeof(parts));
}

static void reuse(struct log_limit *limit, uint64_t key, const struct log_line *line, usec_t now)
{
    if (limit->n_left_out > 0)
        sum_up(limit);
    *limit = (struct log_limit){
        .key = key,
        .since = now,
        .level = line->level,
        .kind = line->kind,
    };
    list_init(&limit->link);
    (void)snprintf(limit->subject, sizeof(limit->subject), "%s",
                   line->subject ? line->subject : "");
}

/* Whether `a` is the better one to be given up. */
static bool is_less_needed(const struct log_limit *a, const struct log_limit *b)
{
    const bool a_floods = a->flooded || a->n_left_out > 0,
               b_floods = b->flooded || b->n_left_out > 0;

    return a_floods != b_floods ? b_floods : a->since < b->since;
}

/* NULL when out of memory. */
static struct log_limit *find(struct log_limits *limits, const struct log_line *line, usec_t now)
{
    const uint64_t key = key_of(line);
    struct log_limit **set = &limits->entries[key % (LOG_LIMIT_ENTRIES / WAYS) * WAYS];
    struct log_limit **worst = set;

    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i] && set[i]->key == key)
            return set[i];
        if (*worst && (!set[i] || is_less_needed(set[i], *worst)))
            worst = &set[i];
    }
    if (!*worst) {
        *worst = calloc(1, sizeof(**worst));
        if (!*worst)
            return NULL;
    }
    reuse(*worst, key, line, now);
    return *worst;
}

/* ---- */

static void leave_out(struct log_limits *limits, struct log_limit *limit,
                      const struct log_line *line)
{
    size_t size = strlen(line->text);

    limit->level = line->level;
    if (size >= sizeof(limit->text)) {
        size = sizeof(limit->text) - sizeof("…");
        while (size > 0 && ((unsigned char)line->text[size] & 0xc0) == 0x80)
            size--;
    }
    (void)snprintf(limit->text, sizeof(limit->text), "%.*s%s", (int)size, line->text,
                   line->text[size] != '\0' ? "…" : "");
    if (limit->n_left_out++ > 0)
        return;
    list_push_back(&limits->pending, &limit->link);
    if (!timer_armed(&limits->timer) || window_end(limit) < limits->timer.at)
        arm(limits);
}

bool log_limit_admits(struct log_limits *limits, const struct log_line *line)
{
    struct log_limit *limit;
    usec_t now;

    if (!limits || !limits->entries || line->level == LOG_LEVEL_DEBUG || !log_enabled(line->level))
        return true;
    now = limits->now(limits->loop);
    limit = find(limits, line, now);
    if (!limit)
        return true;
    advance(limit, now);
    limit->n++;
    if (!limit->flooded && limit->n <= LOG_LIMIT_BURST)
        return true;
    leave_out(limits, limit, line);
    return false;
}

int log_limits_init(struct log_limits *limits, struct loop *loop)
{
    *limits = (struct log_limits){
        .loop = loop,
        .now = loop_now,
        .entries = calloc(LOG_LIMIT_ENTRIES, sizeof(*limits->entries)),
    };
    list_init(&limits->pending);
    timer_init(&limits->timer, on_timer);
    return limits->entries ? 0 : -ENOMEM;
}

void log_limits_deinit(struct log_limits *limits)
{
    if (!limits->entries)
        return;
    list_for_each_safe (node, &limits->pending)
        sum_up(list_entry(node, struct log_limit, link));
    timer_disarm(loop_timers(limits->loop), &limits->timer);
    for (size_t i = 0; i < LOG_LIMIT_ENTRIES; i++)
        free(limits->entries[i]);
    free(TAKE_PTR(limits->entries));
}

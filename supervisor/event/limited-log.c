/* SPDX-License-Identifier: MIT */
#include "supervisor/event/limited-log.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "shared/base/list.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Entries per set: the log is a set-associative cache. */
#define WAYS        4u
#define LATEST_SIZE 256  /* of the latest line left out */
#define TEXT_SIZE   2048 /* of a line written */
#define SUBJECT_MAX 80

struct line_counter {
    struct list link; /* limited_log.pending */
    uint64_t key;
    usec_t since; /* beginning of the window */
    unsigned n;   /* lines within it, including unwritten ones */
    uint64_t n_left_out;
    bool flooded; /* the last window overflowed: this one is written only as a summary */
    enum log_level level;
    const char *kind;
    char subject[SUBJECT_MAX];
    char text[LATEST_SIZE];
};

static usec_t window_end(const struct line_counter *counter)
{
    return usec_add(counter->since, LIMITED_LOG_WINDOW);
}

static void sum_up(struct line_counter *counter)
{
    const struct log_fields fields =
        LOG_FIELDS({"TROUPE_GROUP", counter->subject[0] != '\0' ? counter->subject : NULL},
                   {"TROUPE_EVENT", counter->kind});

    if (counter->n_left_out == 1)
        log_write(counter->level, fields, "%s", counter->text);
    else
        log_write(counter->level, fields, "%s%s%llu more like this in %llu s, the latest: %s",
                  counter->subject, counter->subject[0] != '\0' ? ": " : "",
                  (unsigned long long)counter->n_left_out,
                  (unsigned long long)(LIMITED_LOG_WINDOW / USEC_PER_SEC), counter->text);
    counter->n_left_out = 0;
    list_unlink(&counter->link);
}

/* Advances to the window of `now`. A flood ends when a window stays below the limit. */
static void advance(struct line_counter *counter, usec_t now)
{
    const usec_t end = window_end(counter);
    const bool is_next = now < usec_add(end, LIMITED_LOG_WINDOW);

    if (now < end)
        return;
    if (counter->n_left_out > 0)
        sum_up(counter);
    counter->flooded = is_next && counter->n > LIMITED_LOG_BURST;
    counter->since = is_next ? end : now;
    counter->n = 0;
}

static void arm(struct limited_log *log)
{
    usec_t at = USEC_INFINITY;

    list_for_each_entry (counter, &log->pending, struct line_counter, link) {
        const usec_t end = window_end(counter);

        at = end < at ? end : at;
    }
    timer_arm(loop_timers(log->loop), &log->timer, at);
}

static void on_timer(struct timer *timer, usec_t now)
{
    struct limited_log *log = list_entry(timer, struct limited_log, timer);

    list_for_each_entry_safe (counter, &log->pending, struct line_counter, link)
        advance(counter, now);
    arm(log);
}

static uint64_t key_of(const struct limited_line *line)
{
    const uint64_t subject = line->subject ? hash_bytes(line->subject, strlen(line->subject)) : 0;
    const uint64_t parts[] = {subject, (uint64_t)(uintptr_t)line->kind, line->level, line->id};

    return hash_bytes(parts, sizeof(parts));
}

static void reuse(struct line_counter *counter, uint64_t key, const struct limited_line *line,
                  usec_t now)
{
    if (counter->n_left_out > 0)
        sum_up(counter);
    *counter = (struct line_counter){
        .key = key,
        .since = now,
        .level = line->level,
        .kind = line->kind,
    };
    list_init(&counter->link);
    (void)snprintf(counter->subject, sizeof(counter->subject), "%s",
                   line->subject ? line->subject : "");
}

/* Returns whether to evict `a` rather than `b`. */
static bool is_less_needed(const struct line_counter *a, const struct line_counter *b)
{
    const bool a_floods = a->flooded || a->n_left_out > 0,
               b_floods = b->flooded || b->n_left_out > 0;

    return a_floods != b_floods ? b_floods : a->since < b->since;
}

/* Returns the entry, evicting another one if necessary; NULL when out of memory. */
static struct line_counter *find(struct limited_log *log, const struct limited_line *line,
                                 usec_t now)
{
    const uint64_t key = key_of(line);
    struct line_counter **set = &log->entries[key % (LIMITED_LOG_ENTRIES / WAYS) * WAYS];
    struct line_counter **worst = set;

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

static void leave_out(struct limited_log *log, struct line_counter *counter,
                      const struct limited_line *line)
{
    size_t size = strlen(line->text);

    counter->level = line->level;
    if (size >= sizeof(counter->text)) {
        size = sizeof(counter->text) - sizeof("…");
        while (size > 0 && ((unsigned char)line->text[size] & 0xc0) == 0x80)
            size--;
    }
    (void)snprintf(counter->text, sizeof(counter->text), "%.*s%s", (int)size, line->text,
                   line->text[size] != '\0' ? "…" : "");
    if (counter->n_left_out++ > 0)
        return;
    list_push_back(&log->pending, &counter->link);
    if (!timer_armed(&log->timer) || window_end(counter) < timer_at(&log->timer))
        arm(log);
}

bool limited_log_admits(struct limited_log *log, const struct limited_line *line)
{
    struct line_counter *counter;
    usec_t now;

    if (!log || !log->entries || line->level == LOG_LEVEL_DEBUG || !log_enabled(line->level))
        return true;
    now = log->now(log->loop);
    counter = find(log, line, now);
    if (!counter)
        return true;
    advance(counter, now);
    counter->n++;
    if (!counter->flooded && counter->n <= LIMITED_LOG_BURST)
        return true;
    leave_out(log, counter, line);
    return false;
}

uint64_t limited_log_id(const char *format, const char *name)
{
    const uint64_t parts[] = {(uint64_t)(uintptr_t)format,
                              name ? hash_bytes(name, strlen(name)) : 0};

    return hash_bytes(parts, sizeof(parts));
}

void limited_log_write(struct limited_log *log, const char *group, enum log_level level,
                       const char *format, ...)
{
    char text[TEXT_SIZE];
    const struct limited_line line = {
        .level = level,
        .subject = group,
        .kind = "peer",
        .id = limited_log_id(format, NULL),
        .text = text,
    };
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (limited_log_admits(log, &line))
        log_write(level, LOG_FIELDS({"TROUPE_GROUP", group}), "%s", text);
}

int limited_log_init(struct limited_log *log, struct loop *loop)
{
    *log = (struct limited_log){
        .loop = loop,
        .now = loop_now,
        .entries = calloc(LIMITED_LOG_ENTRIES, sizeof(*log->entries)),
    };
    list_init(&log->pending);
    timer_init(&log->timer, on_timer);
    return log->entries ? 0 : -ENOMEM;
}

void limited_log_deinit(struct limited_log *log)
{
    if (!log->entries)
        return;
    list_for_each_entry_safe (counter, &log->pending, struct line_counter, link)
        sum_up(counter);
    timer_disarm(loop_timers(log->loop), &log->timer);
    for (size_t i = 0; i < LIMITED_LOG_ENTRIES; i++)
        free(log->entries[i]);
    free(TAKE_PTR(log->entries));
}

/* SPDX-License-Identifier: MIT */
#pragma once

/* One line per event, with structured fields. The code that decides logs; lower layers return.
 *
 *     log_write(LOG_LEVEL_WARNING, LOG_FIELDS({"TROUPE_WORKER", name}), "worker %s: %s", name,
 * why);
 *
 * Without a sink, lines go to standard error in a form for people: "trouped: warning: message".
 * Each line is one write(2) of at most PIPE_BUF bytes that does not wait: if the reader is too
 * slow, lines are lost, and a later line says how many. Not thread-safe, not async-signal-safe.
 */

#include <stdbool.h>
#include <stddef.h>

/* The numbers are those of syslog(3), so that sinks can use them. */
enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_NOTICE = 5,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7,
};

/* name: upper case, as in the journal; value: any text, NULL = the field is left out. Both
 * borrowed. */
struct log_field {
    const char *name;
    const char *value;
};

struct log_fields {
    const struct log_field *fields;
    size_t n_fields;
};

#define LOG_FIELDS(...)                                                                            \
    ((struct log_fields){.fields = (const struct log_field[]){__VA_ARGS__},                        \
                         .n_fields = sizeof((const struct log_field[]){__VA_ARGS__}) /             \
                                     sizeof(struct log_field)})
#define LOG_NO_FIELDS ((struct log_fields){0})

/* Receives every line that passes the level, without a newline. Must not block or log. */
typedef void (*log_sink_fn)(enum log_level level, struct log_fields fields, const char *message);

/* name: shown before each line on standard error; borrowed for the life of the process. */
void log_init(const char *name, enum log_level max_level);

/* NULL = standard error. */
void log_set_sink(log_sink_fn sink);

void log_set_max_level(enum log_level max_level);
bool log_enabled(enum log_level level);

/* "error" … "debug", or "err", "warn"; -EINVAL for anything else. */
int log_level_from_string(const char *text, enum log_level *ret);

/* Lines longer than 8 KiB are cut with "…". Keeps errno; "%m" works. */
void log_write(enum log_level level, struct log_fields fields, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(...)   log_write(LOG_LEVEL_ERROR, LOG_NO_FIELDS, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, LOG_NO_FIELDS, __VA_ARGS__)
#define log_notice(...)  log_write(LOG_LEVEL_NOTICE, LOG_NO_FIELDS, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, LOG_NO_FIELDS, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, LOG_NO_FIELDS, __VA_ARGS__)

/* ---- the priority of syslog(3) at the beginning of a line of output, such as "<3>" ---- */

/* Returns its size, or 0 if the line does not begin with a priority. */
size_t line_level_size(const char *line, size_t size);

/* Removes the priorities from all lines, in place. Returns how many bytes are left. */
size_t line_levels_remove(char *lines, size_t size);

/* SPDX-License-Identifier: MIT */
#include "supervisor/metrics/metrics.h"

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include "supervisor/metrics/family.h"
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Room for the upper bounds of buckets. */
#define BOUNDS_MAX 64

/* The text being written, object by object, so that their labels are made, and their members are in
 * the processor's cache, only once. Since the text needs the order of families, each family has its
 * own piece. */
struct metrics_text {
    size_t n_bounds; /* of the histograms' buckets */
    char bounds[BOUNDS_MAX][32];
    struct buffer *pieces; /* of FAMILIES */
    struct buffer labels;  /* of the object */
    const struct family *family;
    struct buffer *lines; /* of that family */
};

/* A label in addition to those of the object. NULL = none. */
struct label {
    const char *name, *value;
};

int metrics_join(json_t *whole, const json_t *part)
{
    json_t *groups = json_object_get(whole, "groups"), *more = json_object_get(part, "groups");

    if (!groups)
        return json_object_update(whole, (json_t *)(uintptr_t)part) < 0 ? -ENOMEM : 0;
    if (json_array_extend(groups, more) < 0)
        return -ENOMEM;
    groups = json_incref(groups);
    if (json_object_update(whole, (json_t *)(uintptr_t)part) < 0) {
        json_decref(groups);
        return -ENOMEM;
    }
    return json_object_set_new(whole, "groups", groups) < 0 ? -ENOMEM : 0;
}

/* ---- a family's first lines ---- */

static const char *const TYPES[] = {
    [FAMILY_GAUGE] = "gauge",
    [FAMILY_COUNTER] = "counter",
    [FAMILY_HISTOGRAM] = "histogram",
};

/* Returns the suffix of the names of a family's samples. */
static const char *sample_suffix(const struct metrics_text *text)
{
    return text->family->type == FAMILY_COUNTER ? "_total" : "";
}

static void write_about(struct metrics_text *text, const char *what, const char *value,
                        const char *end)
{
    const char *const pieces[] = {"# ", what,  " ", text->family->name, sample_suffix(text),
                                  " ",  value, end};

    for (size_t i = 0; i < ELEMENTS(pieces); i++)
        buffer_add_string(text->lines, pieces[i]);
}

static void begin_family(struct metrics_text *text)
{
    const struct family *family = text->family;

    if (text->lines->size > 0)
        return;
    write_about(text, "HELP", family->help, ".\n");
    write_about(text, "TYPE", TYPES[family->type], "\n");
}

/* ---- samples ---- */

/* Most values are a few plain characters, for which a loop is faster than strcspn(). */
static void write_escaped(struct buffer *lines, const char *value)
{
    const char *plain = value;

    for (; *value != '\0'; value++) {
        if (*value != '\\' && *value != '"' && *value != '\n')
            continue;
        buffer_add(lines, plain, (size_t)(value - plain));
        buffer_add_char(lines, '\\');
        buffer_add_char(lines, *value == '\n' ? 'n' : *value);
        plain = value + 1;
    }
    buffer_add(lines, plain, (size_t)(value - plain));
}

/* Writes a label if it has a value, `separated` from one before it. */
static void write_label(struct buffer *lines, bool separated, const char *name, const char *value)
{
    if (!value)
        return;
    if (separated)
        buffer_add_char(lines, ',');
    buffer_add_string(lines, name);
    buffer_add(lines, "=\"", 2);
    write_escaped(lines, value);
    buffer_add_char(lines, '"');
}

static const char *member_text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* Makes the labels that all samples of an object have. */
static void take_labels(struct metrics_text *text, enum family_scope scope, const json_t *object)
{
    struct buffer *labels = &text->labels;

    labels->size = 0;
    if (scope == FAMILY_GROUP)
        write_label(labels, false, "group", member_text(object, "name"));
    if (scope == FAMILY_SCHEDULE)
        write_label(labels, false, "schedule", member_text(object, "name"));
    if (scope == FAMILY_LIMIT) {
        write_label(labels, false, "limit", member_text(object, "name"));
        write_label(labels, true, "kind", member_text(object, "kind"));
    }
}

/* Writes the sample's name and labels. */
static void begin_sample(struct metrics_text *text, const char *suffix, struct label label)
{
    struct buffer *lines = text->lines;
    const struct buffer *labels = &text->labels;

    begin_family(text);
    buffer_add_string(lines, text->family->name);
    buffer_add_string(lines, suffix);
    if (labels->size > 0 || label.value) {
        buffer_add_char(lines, '{');
        buffer_add(lines, labels->bytes, labels->size);
        write_label(lines, labels->size > 0, label.name, label.value);
        buffer_add_char(lines, '}');
    }
    buffer_add_char(lines, ' ');
}

/* Formats microseconds as seconds, without zeros at the end; `whole` replaces a missing fraction.
 */
static const char *format_seconds(char buffer[32], int64_t usec, const char *whole)
{
    const char *sign = usec < 0 ? "-" : "";
    const uint64_t value = usec < 0 ? 0 - (uint64_t)usec : (uint64_t)usec;
    size_t size = (size_t)snprintf(buffer, 32, "%s%" PRIu64 ".%06" PRIu64, sign, value / 1000000,
                                   value % 1000000);

    while (buffer[size - 1] == '0')
        size--;
    if (buffer[size - 1] == '.')
        (void)snprintf(buffer + size - 1, 32 - size, "%s", whole);
    else
        buffer[size] = '\0';
    return buffer;
}

static void write_value(struct metrics_text *text, int64_t value)
{
    char buffer[32];

    if (text->family->unit == FAMILY_SECONDS && value != 0)
        buffer_add_string(text->lines, format_seconds(buffer, value, ""));
    else
        buffer_add_number(text->lines, value);
    buffer_add_char(text->lines, '\n');
}

static void write_count(struct metrics_text *text, const char *suffix, struct label label,
                        int64_t count)
{
    begin_sample(text, suffix, label);
    buffer_add_number(text->lines, count);
    buffer_add_char(text->lines, '\n');
}

/* Writes an integer or a boolean, and ignores other values. */
static void write_number(struct metrics_text *text, const json_t *value, struct label label)
{
    if (!json_is_integer(value) && !json_is_boolean(value))
        return;
    begin_sample(text, sample_suffix(text), label);
    write_value(text, json_is_integer(value) ? json_integer_value(value) : json_is_true(value));
}

static int64_t count_all(const json_t *buckets)
{
    int64_t count = 0;

    for (size_t i = 0; i < json_array_size(buckets); i++)
        count += json_integer_value(json_array_get(buckets, i));
    return count;
}

/* The reply counts each bucket separately, and omits zeros at the end. An empty histogram has only
 * its last bucket: with many idle groups, most of the text would be other buckets, and sums over
 * groups are the same without them. */
static void write_histogram(struct metrics_text *text, const json_t *histogram)
{
    const json_t *buckets = json_object_get(histogram, "buckets");
    const int64_t all = count_all(buckets);
    int64_t count = 0;

    if (!json_is_array(buckets) || text->n_bounds == 0)
        return;
    for (size_t i = 0; i < text->n_bounds && all > 0; i++) {
        count += json_integer_value(json_array_get(buckets, i));
        write_count(text, "_bucket", (struct label){"le", text->bounds[i]}, count);
    }
    write_count(text, "_bucket", (struct label){"le", "+Inf"}, all);
    write_count(text, "_count", (struct label){0}, all);
    begin_sample(text, "_sum", (struct label){0});
    write_value(text, json_integer_value(json_object_get(histogram, "sum_usec")));
}

static void write_each(struct metrics_text *text, const json_t *values)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)values, name, value)
        write_number(text, value, (struct label){text->family->label, name});
}

static void write_samples(struct metrics_text *text, const json_t *object)
{
    const struct family *family = text->family;
    const json_t *value = json_object_get(object, family->member);

    if (family->type == FAMILY_HISTOGRAM) {
        write_histogram(text, value);
    } else if (!family->label) {
        write_number(text, value, (struct label){0});
    } else if (json_is_string(value)) {
        begin_sample(text, sample_suffix(text),
                     (struct label){family->label, json_string_value(value)});
        buffer_add(text->lines, "1\n", 2);
    } else {
        write_each(text, value);
    }
}

/* ---- all of them ---- */

static const char *const SCOPES[_FAMILY_N_SCOPES] = {
    [FAMILY_GROUP] = "groups",          [FAMILY_SCHEDULE] = "schedules",
    [FAMILY_LIMIT] = "limits",          [FAMILY_STORE] = "store",
    [FAMILY_HISTORY] = "history",       [FAMILY_LETTERS] = "dead_letters",
    [FAMILY_SUPERVISOR] = "supervisor",
};

static void write_families(struct metrics_text *text, enum family_scope scope, const json_t *object)
{
    take_labels(text, scope, object);
    for (size_t i = 0; i < N_FAMILIES; i++) {
        if (FAMILIES[i].scope != scope)
            continue;
        text->family = &FAMILIES[i];
        text->lines = &text->pieces[i];
        write_samples(text, object);
    }
}

/* A scope is an object, or an array of them. */
static void write_scope(struct metrics_text *text, enum family_scope scope, const json_t *reply)
{
    const json_t *value = json_object_get(reply, SCOPES[scope]);

    if (json_is_object(value))
        write_families(text, scope, value);
    for (size_t i = 0; i < json_array_size(value); i++)
        write_families(text, scope, json_array_get(value, i));
}

static void take_bounds(struct metrics_text *text, const json_t *bounds)
{
    const size_t n = json_array_size(bounds);

    if (n == 0 || n > BOUNDS_MAX)
        return;
    for (size_t i = 0; i < n; i++)
        (void)format_seconds(text->bounds[i], json_integer_value(json_array_get(bounds, i)), ".0");
    text->n_bounds = n;
}

/* Appends the piece, and frees it. */
static void take_piece(struct buffer *whole, struct buffer *piece)
{
    buffer_add(whole, piece->bytes, piece->size);
    whole->failed = whole->failed || piece->failed;
    free(TAKE_PTR(piece->bytes));
}

static char *join_pieces(struct metrics_text *text, size_t *ret_size)
{
    struct buffer whole = {.failed = text->labels.failed};

    for (size_t i = 0; i < N_FAMILIES; i++)
        take_piece(&whole, &text->pieces[i]);
    /* A comment that distinguishes a complete text from a part. */
    buffer_add_string(&whole, "# EOF\n");
    return buffer_take(&whole, ret_size);
}

char *metrics_to_text(const json_t *reply, size_t *ret_size)
{
    struct metrics_text text = {.pieces = calloc(N_FAMILIES, sizeof(*text.pieces))};
    char *joined;

    if (!text.pieces)
        return NULL;
    take_bounds(&text, json_object_get(reply, "bounds_usec"));
    for (unsigned scope = 0; scope < _FAMILY_N_SCOPES; scope++)
        write_scope(&text, (enum family_scope)scope, reply);
    joined = join_pieces(&text, ret_size);
    free(text.pieces);
    free(text.labels.bytes);
    return joined;
}

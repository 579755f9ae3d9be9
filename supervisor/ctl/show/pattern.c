/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/pattern.h"

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/format.h"
#include <stdio.h>
#include <string.h>

/* ---- the looks of states ---- */

struct look {
    const char *state;
    const char *color;
    const char *dot;
};

static const struct look looks[] = {
    /* groups */
    {"running", GREEN, "●"},
    {"paused", YELLOW, "●"},
    {"degraded", YELLOW, "!"},
    {"failing", RED, "!"},
    {"cannot start", RED, "!"},
    {"draining", YELLOW, "●"},
    {"stopped", DIM, "○"},
    {"failed", RED, "✗"},
    /* cells, as groups, and */
    {"retiring", DIM, "○"},
    /* workers */
    {"starting", YELLOW, "●"},
    {"idle", GREEN, "●"},
    {"up", GREEN, "●"},
    {"busy", GREEN, "●"},
    {"stopping", YELLOW, "●"},
    {"killing", RED, "●"},
    {"backoff", YELLOW, "○"},
    /* jobs */
    {"queued", PLAIN, "○"},
    {"pending", PLAIN, "○"},
    {"succeeded", GREEN, "●"},
    {"cancelled", DIM, "○"},
    {"dead", RED, "✗"},
};

static const struct look *look_of(const char *state)
{
    static const struct look plain = {"", PLAIN, "●"};

    for (size_t i = 0; i < ELEMENTS(looks); i++)
        if (strcmp(looks[i].state, state) == 0)
            return &looks[i];
    return &plain;
}

/* ---- members ---- */

struct value {
    const json_t *json;
    const char *text; /* "" if it has none */
    uint64_t number;
    usec_t now;
};

/* The buffer for a member, as large as that of SAFE_LINE(). */
#define MEMBER_SIZE 2048

static void write_plain(const struct value *value, char *buffer)
{
    if (json_is_integer(value->json))
        snprintf(buffer, MEMBER_SIZE, "%" JSON_INTEGER_FORMAT, json_integer_value(value->json));
    else
        format_safe(buffer, 512, value->text);
}

static void write_nothing(const struct value *value, char *buffer)
{
    *buffer = '\0';
}

static void write_ago(const struct value *value, char *buffer)
{
    format_ago(buffer, FORMAT_SIZE, value->now, value->number);
}

static void write_age(const struct value *value, char *buffer)
{
    format_span(buffer, FORMAT_SIZE, usec_sub(value->now, value->number));
}

static void write_in(const struct value *value, char *buffer)
{
    format_span(buffer, FORMAT_SIZE, usec_sub(value->number, value->now));
}

static void write_clock(const struct value *value, char *buffer)
{
    format_clock(buffer, FORMAT_SIZE, value->now, value->number);
}

static void write_until(const struct value *value, char *buffer)
{
    if (value->number > value->now)
        snprintf(buffer, MEMBER_SIZE, "in %s (%s)", SPAN(value->number - value->now),
                 TIME(value->number));
    else
        strcpy(buffer, "now");
}

/* Writes the first text of an array. */
static void write_first(const struct value *value, char *buffer)
{
    const char *text = json_string_value(json_array_get(value->json, 0));

    format_safe(buffer, 512, text ? text : "");
}

/* Writes a rate, which is a real number. */
static void write_rate(const struct value *value, char *buffer)
{
    const double rate = json_real_value(value->json);

    snprintf(buffer, FORMAT_SIZE, "%.*f", rate < 100 ? 1 : 0, rate);
}

static void write_plural(const struct value *value, char *buffer)
{
    strcpy(buffer, plural(value->number));
}

static void write_dot(const struct value *value, char *buffer)
{
    const struct look *look = look_of(value->text);

    snprintf(buffer, MEMBER_SIZE, "%s%s" PLAIN, look->color, look->dot);
}

static void write_state(const struct value *value, char *buffer)
{
    snprintf(buffer, MEMBER_SIZE, "%s%s" PLAIN, look_of(value->text)->color, SAFE(value->text));
}

/* Writes an enum with hyphens, as people do. */
static void write_enum(const struct value *value, char *buffer)
{
    format_safe(buffer, 512, value->text);
    while ((buffer = strchr(buffer, '_')))
        *buffer = '-';
}

static const struct {
    const char *name;
    void (*write)(const struct value *value, char *buffer);       /* into MEMBER_SIZE bytes; or */
    char *(*quantity)(char *buffer, size_t size, uint64_t value); /* of the number; or */
    char *(*text)(char *buffer, size_t size, const char *text);
    size_t size; /* of the text */
} formats[] = {
    {"", .write = write_plain},
    {"if", .write = write_nothing},
    {"count", .quantity = format_count},
    {"bytes", .quantity = format_bytes},
    {"span", .quantity = format_span},
    {"time", .quantity = format_time},          /* a date */
    {"moment", .quantity = format_time_of_day}, /* a date in the last days, with milliseconds */
    {"clock", .write = write_clock},            /* a date, of today only its time */
    {"ago", .write = write_ago},                /* "3s ago" */
    {"age", .write = write_age},                /* "3s", of a date in the past */
    {"in", .write = write_in},                  /* "3s", of a date in the future */
    {"until", .write = write_until},            /* "in 3s (DATE)" */
    {"rate", .write = write_rate},
    {"s", .write = write_plural}, /* "s" unless the number is 1 */
    {"dot", .write = write_dot},
    {"state", .write = write_state},
    {"enum", .write = write_enum},
    {"short", .text = format_safe, .size = 128},
    {"full", .text = format_safe, .size = MEMBER_SIZE},
    {"line", .text = format_first_line, .size = MEMBER_SIZE}, /* the first one */
    {"first", .write = write_first},
    {"last", .text = format_last_line, .size = 1024}, /* the last line */
};

/* Returns whether there was anything to write: text may have no last line. */
static bool write_value(struct buffer *out, const struct value *value, const char *format)
{
    char buffer[MEMBER_SIZE] = "";
    size_t i = 0;

    while (i + 1 < ELEMENTS(formats) && strcmp(formats[i].name, format) != 0)
        i++;
    if (formats[i].write)
        formats[i].write(value, buffer);
    else if (formats[i].quantity)
        formats[i].quantity(buffer, FORMAT_SIZE, value->number);
    else
        formats[i].text(buffer, formats[i].size, value->text);
    buffer_add_string(out, buffer);
    return !formats[i].text || *buffer != '\0';
}

static bool is_given(const json_t *member)
{
    return member && !json_is_null(member) && !json_is_false(member) &&
           !(json_is_string(member) && json_string_length(member) == 0) &&
           !(json_is_array(member) && json_array_size(member) == 0);
}

static const json_t *find(const json_t *object, const char *path)
{
    const char *dot = strchr(path, '.');
    char name[64];

    if (!dot)
        return json_object_get(object, path);
    snprintf(name, sizeof(name), "%.*s", (int)(dot - path), path);
    return find(json_object_get(object, name), dot + 1);
}

static uint64_t number_of(const json_t *json)
{
    if (json_is_array(json))
        return json_array_size(json);
    return json_integer_value(json) < 0 ? 0 : (uint64_t)json_integer_value(json);
}

static bool equals(const struct value *value, const char *operand)
{
    if (json_is_boolean(value->json))
        return strcmp(json_is_true(value->json) ? "true" : "false", operand) == 0;
    if (json_is_integer(value->json))
        return json_integer_value(value->json) == strtoll(operand, NULL, 10);
    return json_is_string(value->json) && strcmp(value->text, operand) == 0;
}

/* ---- patterns ---- */

struct writer {
    struct buffer text;
    size_t member_end; /* of the last member that wrote something */
    const json_t *object;
    usec_t now;
};

/* Copies the text before the first of the characters in `end`, and returns where that character is.
 */
static const char *take(const char *at, const char *end, char ret[64])
{
    const size_t size = strcspn(at, end);

    snprintf(ret, 64, "%.*s", (int)size, at);
    return at + size;
}

/* Writes the member whose name is at `*at`. Returns whether it is given and its condition is met.
 */
static bool write_member(struct writer *writer, const char **at)
{
    char name[64], operand[64] = "", format[64] = "";
    const char sign = *(*at = take(*at, "-/=>:}", name));
    struct value value = {.json = find(writer->object, name), .now = writer->now};
    const size_t size = writer->text.size;
    bool given = is_given(value.json);

    value.text = json_is_string(value.json) ? json_string_value(value.json) : "";
    value.number = number_of(value.json);
    if (sign != ':' && sign != '}')
        *at = take(*at + 1, ":}", operand);
    if (sign == '-') {
        given = given && is_given(find(writer->object, operand));
        value.number = usec_sub(value.number, number_of(find(writer->object, operand)));
    } else if (sign == '=') {
        given = equals(&value, operand);
    } else if (sign == '/') {
        given = strncmp(value.text, operand, strlen(operand)) == 0;
        value.text += given ? strlen(operand) : 0;
    } else if (sign == '>') {
        given = value.number > strtoull(operand, NULL, 10);
    }
    if (**at == ':')
        *at = take(*at + 1, "}", format);
    else if (sign == '=' || sign == '>')
        strcpy(format, "if");
    (*at)++;
    given = write_value(&writer->text, &value, format) && given;
    if (writer->text.size > size)
        writer->member_end = writer->text.size;
    return given;
}

/* Whether a separator would follow nothing, or a blank or "(" of the pattern. Marks of colours do
 * not count. */
static bool is_at_beginning(const struct writer *writer)
{
    const char *text = writer->text.bytes;
    size_t size = writer->text.size;

    while (size > 0 && text[size - 1] > 0 && text[size - 1] <= *YELLOW)
        size--;
    return size == 0 ||
           (size > writer->member_end && (text[size - 1] == ' ' || text[size - 1] == '('));
}

static void write_literal(struct writer *writer, const char *text, size_t size)
{
    const bool separates = size >= 2 && (text[0] == ',' || text[0] == ';') && text[1] == ' ';
    const size_t skipped = separates && is_at_beginning(writer) ? 2 : 0;

    buffer_add(&writer->text, text + skipped, size - skipped);
}

static bool write_choice(struct writer *writer, const char **at);

/* Writes up to the end of the alternative, and returns whether it applies. */
static bool write_alternative(struct writer *writer, const char **at)
{
    bool applies = true, has_parts = false, any = false;

    for (;;) {
        const size_t plain = strcspn(*at, "{[<|]>");
        const char next = (*at)[plain];
        bool r;

        write_literal(writer, *at, plain);
        *at += plain;
        if (next != '{' && next != '[' && next != '<')
            return applies && (any || !has_parts);
        (*at)++;
        r = next == '{' ? write_member(writer, at) : write_choice(writer, at);
        applies = applies && (r || next == '[');
        any = any || r;
        has_parts = true;
    }
}

/* Writes the first alternative that applies, and returns whether one does. */
static bool write_choice(struct writer *writer, const char **at)
{
    bool done = false, last;

    do {
        const size_t size = writer->text.size, member_end = writer->member_end;

        if (!write_alternative(writer, at) || done) {
            writer->text.size = size;
            writer->member_end = member_end;
        } else {
            done = true;
        }
        last = **at != '|';
        *at += **at != '\0';
    } while (!last);
    return done;
}

char *pattern_text(const char *pattern, const json_t *object, usec_t now)
{
    struct writer writer = {.object = object, .now = now};

    (void)write_alternative(&writer, &pattern);
    return buffer_take(&writer.text, NULL);
}

void pattern_print(const struct terminal *terminal, const char *pattern, const json_t *object,
                   usec_t now)
{
    _cleanup_free_ char *text = pattern_text(pattern, object, now);
    char *rest = text;

    for (const char *line; text && (line = strsep(&rest, "\n"));)
        if (*line != '\0')
            terminal_print(terminal, "%s", line);
}

/* SPDX-License-Identifier: MIT */
#include "shared/base/cleanup.h"
#include "supervisor/calendar/calendar.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TOKENS_MAX      6 /* a cron line and a zone */
#define CRON_FIELDS     5
#define USEC_PER_MINUTE (60 * (uint32_t)USEC_PER_SEC)
#define DAYS_TO_LAST    28 /* "~28" exists in each month */

/* A word between blanks. */
struct token {
    const char *start, *end;
};

struct parser {
    const char *text;
    const char *at, *end; /* what is left of the current token */
    bool cron;
    struct token tokens[TOKENS_MAX];
    unsigned n_tokens;
    struct calendar *calendar;
    struct calendar_error *error;
};

__attribute__((format(printf, 3, 4))) static int fail(struct parser *parser, const char *at,
                                                      const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    parser->error->column = (unsigned)(at - parser->text) + 1;
    (void)vsnprintf(parser->error->text, sizeof(parser->error->text), format, arguments);
    va_end(arguments);
    return CALENDAR_E_INVALID;
}

/* ---- characters ---- */

static char peek(const struct parser *parser)
{
    return parser->at < parser->end ? *parser->at : '\0';
}

static bool take(struct parser *parser, const char *text)
{
    size_t length = strlen(text);

    if ((size_t)(parser->end - parser->at) < length || memcmp(parser->at, text, length) != 0)
        return false;
    parser->at += length;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A number of at most four digits. */
static bool take_number(struct parser *parser, unsigned *ret)
{
    const char *start = parser->at;
    unsigned value = 0;

    while (is_digit(peek(parser)) && parser->at - start < 4)
        value = value * 10 + (unsigned)(*parser->at++ - '0');
    *ret = value;
    return parser->at > start && !is_digit(peek(parser));
}

/* ---- lists of whole numbers ---- */

struct field {
    const char *noun;
    unsigned min, max;
    bool backward;            /* counts from the end: repetitions go down */
    bool numbers;             /* as against names only */
    const char *const *names; /* of the numbers 0 to max */
    const char *allowed;      /* replaces the numbers in the error */
};

static const char *const WEEKDAYS[] = {"Sunday",   "Monday", "Tuesday",  "Wednesday",
                                       "Thursday", "Friday", "Saturday", "Sunday"};
static const char *const MONTHS[] = {"",        "January",  "February", "March",  "April",
                                     "May",     "June",     "July",     "August", "September",
                                     "October", "November", "December"};

static const struct field YEAR = {"year", CALENDAR_YEAR_FIRST, CALENDAR_YEAR_LAST, .numbers = true};
static const struct field MONTH = {"month", 1, 12, .numbers = true};
static const struct field DAY = {"day", 1, 31, .numbers = true};
static const struct field DAY_TO_LAST = {"day after ~", 1, DAYS_TO_LAST, true, .numbers = true};
static const struct field HOUR = {"hour", 0, 23, .numbers = true};
static const struct field MINUTE = {"minute", 0, 59, .numbers = true};
static const struct field WEEKDAY = {"weekday", 1, 7, .names = WEEKDAYS, .allowed = "Mon to Sun"};
static const struct field CRON_MONTH = {
    "month", 1, 12, .numbers = true, .names = MONTHS, .allowed = "1 to 12, or Jan to Dec"};
static const struct field CRON_WEEKDAY = {"day of the week",
                                          0,
                                          7,
                                          .numbers = true,
                                          .names = WEEKDAYS,
                                          .allowed = "0 to 7, or Sun to Sat"};

/* A set of the numbers of a field; bit 0 is `min`. */
struct set {
    uint64_t bits[4];
};

static void add_to_set(struct set *set, unsigned bit)
{
    set->bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

static int fail_value(struct parser *parser, const struct field *field, const char *at)
{
    if (field->allowed)
        return fail(parser, at, "the %s must be %s", field->noun, field->allowed);
    return fail(parser, at, "the %s must be %u to %u", field->noun, field->min, field->max);
}

/* Takes a name, or its first three letters, in any case. */
static bool take_name(struct parser *parser, const struct field *field, unsigned *ret)
{
    const char *start = parser->at;
    size_t length;

    while (is_letter(peek(parser)))
        parser->at++;
    length = (size_t)(parser->at - start);
    for (unsigned i = field->min; field->names && i <= field->max; i++)
        if ((length == 3 || length == strlen(field->names[i])) &&
            strncasecmp(start, field->names[i], length) == 0) {
            *ret = i;
            return length > 0;
        }
    return false;
}

static int take_value(struct parser *parser, const struct field *field, unsigned *ret)
{
    const char *start = parser->at;
    bool taken = field->numbers && is_digit(peek(parser)) ? take_number(parser, ret)
                                                          : take_name(parser, field, ret);

    if (taken && field == &YEAR && *ret < 100)
        *ret += *ret < 70 ? 2000 : 1900;
    if (!taken || *ret < field->min || *ret > field->max)
        return fail_value(parser, field, start);
    return 0;
}

/* Weekdays may have a hyphen. */
static bool take_range(struct parser *parser, const struct field *field)
{
    if (parser->cron)
        return take(parser, "-");
    return take(parser, "..") || (field == &WEEKDAY && take(parser, "-"));
}

static int take_step(struct parser *parser, bool allowed, unsigned *ret)
{
    const char *start = parser->at;

    if (!allowed)
        return fail(parser, start, "a step must follow %s",
                    parser->cron ? "* or a range" : "a number");
    if (!take_number(parser, ret) || *ret == 0)
        return fail(parser, start, "a step must be 1 to 9999");
    return 0;
}

/* Adds start, start/step, start..stop, start..stop/step, and, in cron lines, an asterisk with a
 * step. */
static int take_element(struct parser *parser, const struct field *field, struct set *set)
{
    unsigned start = field->min, stop = field->max, step = 1;
    const char *at = parser->at;
    bool all = parser->cron && take(parser, "*"), range = false;
    int r;

    if (!all) {
        r = take_value(parser, field, &start);
        if (r != 0)
            return r;
        stop = start;
        range = take_range(parser, field);
    }
    if (range) {
        r = take_value(parser, field, &stop);
        if (r != 0)
            return r;
        if (field == &CRON_WEEKDAY && stop == 0)
            stop = 7; /* "FRI-SUN" */
    }
    if (stop < start)
        return fail(parser, at, "a range must not end before it begins");
    if (take(parser, "/")) {
        r = take_step(parser, parser->cron ? all || range : field != &WEEKDAY, &step);
        if (r != 0)
            return r;
        if (!all && !range && field->backward)
            start = field->min;
        else if (!all && !range)
            stop = field->max;
    }
    for (unsigned i = 0; i <= stop - start; i += step)
        add_to_set(set, (field->backward ? stop - i : start + i) - field->min);
    return 0;
}

static void add_all(const struct field *field, struct set *set)
{
    for (unsigned i = field->min; i <= field->max; i++)
        add_to_set(set, i - field->min);
}

static int take_list(struct parser *parser, const struct field *field, struct set *ret)
{
    int r;

    *ret = (struct set){0};
    if (!parser->cron && field != &WEEKDAY && take(parser, "*")) {
        add_all(field, ret);
        return 0;
    }
    do {
        r = take_element(parser, field, ret);
        if (r != 0)
            return r;
    } while (take(parser, ",") && (field != &WEEKDAY || parser->at < parser->end));
    return 0;
}

/* ---- seconds ---- */

/* Takes a number with a fraction, rounded to microseconds. */
static bool take_seconds(struct parser *parser, uint32_t *ret)
{
    unsigned whole, digit, scale = (unsigned)USEC_PER_SEC;
    const char *start;

    if (!take_number(parser, &whole) || whole >= 3600)
        return false;
    *ret = whole * (unsigned)USEC_PER_SEC;
    if (!(peek(parser) == '.' && parser->end - parser->at > 1 && is_digit(parser->at[1])))
        return true;
    start = ++parser->at;
    for (; is_digit(peek(parser)); parser->at++) {
        digit = (unsigned)(*parser->at - '0');
        scale /= 10;
        if (scale > 0)
            *ret += digit * scale;
        else if (parser->at - start == 6 && digit >= 5)
            *ret += 1;
    }
    return true;
}

static int take_second(struct parser *parser, uint32_t *ret)
{
    const char *start = parser->at;

    if (!take_seconds(parser, ret) || *ret >= USEC_PER_MINUTE)
        return fail(parser, start, "the second must be 0 to 59.999999");
    return 0;
}

static int take_seconds_element(struct parser *parser, struct calendar_seconds *ret)
{
    const char *start = parser->at;
    int r = take_second(parser, &ret->start);
    bool range;

    if (r != 0)
        return r;
    ret->stop = ret->start;
    ret->step = (uint32_t)USEC_PER_SEC;
    range = take(parser, "..");
    if (range) {
        r = take_second(parser, &ret->stop);
        if (r != 0)
            return r;
    }
    if (ret->stop < ret->start)
        return fail(parser, start, "a range must not end before it begins");
    if (!take(parser, "/"))
        return 0;
    start = parser->at;
    if (!take_seconds(parser, &ret->step) || ret->step == 0)
        return fail(parser, start, "a step must be 0.000001 to 3599 seconds");
    if (!range)
        ret->stop = USEC_PER_MINUTE - 1;
    return 0;
}

static int take_seconds_list(struct parser *parser)
{
    struct calendar *calendar = parser->calendar;
    int r;

    calendar->n_seconds = 0;
    if (take(parser, "*")) {
        calendar->seconds[calendar->n_seconds++] =
            (struct calendar_seconds){0, USEC_PER_MINUTE - 1, (uint32_t)USEC_PER_SEC};
        return 0;
    }
    do {
        if (calendar->n_seconds == CALENDAR_SECONDS_MAX)
            return fail(parser, parser->at, "a list of seconds must have at most %d elements",
                        CALENDAR_SECONDS_MAX);
        r = take_seconds_element(parser, &calendar->seconds[calendar->n_seconds]);
        if (r != 0)
            return r;
        calendar->n_seconds++;
    } while (take(parser, ","));
    return 0;
}

/* ---- tokens ---- */

static void set_token(struct parser *parser, unsigned i)
{
    parser->at = parser->tokens[i].start;
    parser->end = parser->tokens[i].end;
}

static bool token_contains(const struct parser *parser, unsigned i, const char *characters)
{
    const struct token *token = &parser->tokens[i];

    return i < parser->n_tokens &&
           strcspn(token->start, characters) < (size_t)(token->end - token->start);
}

static bool token_is_word(const struct parser *parser, unsigned i)
{
    return i < parser->n_tokens && is_letter(*parser->tokens[i].start);
}

/* Takes one of the separators. */
static int take_separator(struct parser *parser, const char *separators)
{
    if (parser->at < parser->end && strchr(separators, *parser->at)) {
        parser->at++;
        return 0;
    }
    return fail(parser, parser->at, "only a comma, .., / or %s may follow",
                separators[1] ? "- or ~" : separators);
}

static int take_end(struct parser *parser)
{
    if (parser->at == parser->end)
        return 0;
    return fail(parser, parser->at, "only a comma, %s / or a blank may follow",
                parser->cron ? "-," : "..,");
}

/* ---- expressions of systemd ---- */

static void set_weekdays(struct calendar *calendar, const struct field *field,
                         const struct set *set)
{
    calendar->weekdays = 0;
    for (unsigned i = field->min; i <= field->max; i++)
        if (set->bits[0] >> (i - field->min) & 1)
            calendar->weekdays |= 1U << (i + 6) % 7;
}

static int parse_weekdays(struct parser *parser)
{
    struct set set;
    int r = take_list(parser, &WEEKDAY, &set);

    set_weekdays(parser->calendar, &WEEKDAY, &set);
    return r != 0 ? r : take_end(parser);
}

static int parse_day(struct parser *parser, bool to_last)
{
    struct calendar *calendar = parser->calendar;
    struct set set;
    int r = take_list(parser, to_last ? &DAY_TO_LAST : &DAY, &set);

    calendar->days = to_last ? 0 : (uint32_t)set.bits[0] << 1;
    for (unsigned i = 0; to_last && i < DAYS_TO_LAST; i++)
        calendar->days_to_last |= (uint32_t)(set.bits[0] >> i & 1) << (31 - i);
    return r != 0 ? r : take_end(parser);
}

/* [year-]month-day or [year-]month~day */
static int parse_date(struct parser *parser)
{
    struct calendar *calendar = parser->calendar;
    unsigned n_separators = 0;
    struct set set;
    int r;

    for (const char *at = parser->at; at < parser->end; at++)
        n_separators += *at == '-' || *at == '~';
    if (n_separators > 1) {
        r = take_list(parser, &YEAR, &set);
        memcpy(calendar->years, set.bits, sizeof(calendar->years));
        r = r != 0 ? r : take_separator(parser, "-");
        if (r != 0)
            return r;
    }
    r = take_list(parser, &MONTH, &set);
    calendar->months = (uint32_t)set.bits[0] << 1;
    r = r != 0 ? r : take_separator(parser, "-~");
    return r != 0 ? r : parse_day(parser, parser->at[-1] == '~');
}

/* hour:minute[:second] */
static int parse_time(struct parser *parser)
{
    struct calendar *calendar = parser->calendar;
    struct set set;
    int r = take_list(parser, &HOUR, &set);

    calendar->hours = (uint32_t)set.bits[0];
    r = r != 0 ? r : take_separator(parser, ":");
    if (r != 0)
        return r;
    r = take_list(parser, &MINUTE, &set);
    calendar->minutes = set.bits[0];
    if (r != 0 || parser->at == parser->end)
        return r;
    r = take_separator(parser, ":");
    r = r != 0 ? r : take_seconds_list(parser);
    return r != 0 ? r : take_end(parser);
}

static int parse_systemd(struct parser *parser)
{
    unsigned i = 0;
    int r = 0;

    if (token_is_word(parser, i)) {
        set_token(parser, i++);
        r = parse_weekdays(parser);
    }
    if (r == 0 && token_contains(parser, i, "-~")) {
        set_token(parser, i++);
        r = parse_date(parser);
    }
    if (r == 0 && token_contains(parser, i, ":")) {
        set_token(parser, i++);
        r = parse_time(parser);
    }
    if (r != 0 || i == parser->n_tokens)
        return r;
    return fail(
        parser, parser->tokens[i].start,
        "this must be weekdays, a date with - or ~, a time with :, and a time zone, in this "
        "order, or a cron line of five fields");
}

/* ---- cron lines ---- */

static int parse_cron(struct parser *parser)
{
    static const struct field *const fields[CRON_FIELDS] = {&MINUTE, &HOUR, &DAY, &CRON_MONTH,
                                                            &CRON_WEEKDAY};
    struct calendar *calendar = parser->calendar;
    struct set sets[CRON_FIELDS];

    parser->cron = true;
    for (unsigned i = 0; i < CRON_FIELDS; i++) {
        int r;

        set_token(parser, i);
        r = take_list(parser, fields[i], &sets[i]);
        r = r != 0 ? r : take_end(parser);
        if (r != 0)
            return r;
    }
    calendar->minutes = sets[0].bits[0];
    calendar->hours = (uint32_t)sets[1].bits[0];
    calendar->days = (uint32_t)sets[2].bits[0] << 1;
    calendar->months = (uint32_t)sets[3].bits[0] << 1;
    set_weekdays(calendar, &CRON_WEEKDAY, &sets[4]);
    calendar->either_day = *parser->tokens[2].start != '*' && *parser->tokens[4].start != '*';
    return 0;
}

/* ---- the whole ---- */

static const struct {
    const char *word, *expression;
} WORDS[] = {
    {"minutely", "*-*-* *:*"},
    {"hourly", "*-*-* *:00"},
    {"daily", "*-*-*"},
    {"weekly", "Mon *-*-*"},
    {"monthly", "*-*-01"},
    {"quarterly", "*-01,04,07,10-01"},
    {"semiannually", "*-01,07-01"},
    {"semi-annually", "*-01,07-01"},
    {"biannually", "*-01,07-01"},
    {"bi-annually", "*-01,07-01"},
    {"yearly", "*-01-01"},
    {"annually", "*-01-01"},
    {"@hourly", "0 * * * *"},
    {"@daily", "0 0 * * *"},
    {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"},
    {"@monthly", "0 0 1 * *"},
    {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"},
};

static const char *expression_of_word(const struct token *token)
{
    size_t length = (size_t)(token->end - token->start);

    for (size_t i = 0; i < ELEMENTS(WORDS); i++)
        if (strlen(WORDS[i].word) == length &&
            strncasecmp(WORDS[i].word, token->start, length) == 0)
            return WORDS[i].expression;
    return NULL;
}

static int split(struct parser *parser, const char *text)
{
    const char *blanks = " \t";

    parser->n_tokens = 0;
    for (text += strspn(text, blanks); *text != '\0'; text += strspn(text, blanks)) {
        struct token token = {text, text + strcspn(text, blanks)};

        if (parser->n_tokens == TOKENS_MAX)
            return fail(parser, text,
                        "a cron line must have five fields, and may have a time zone");
        parser->tokens[parser->n_tokens++] = token;
        text = token.end;
    }
    if (parser->n_tokens == 0)
        return fail(parser, parser->text,
                    "it must be like \"Mon..Fri *-*-* 09:00\", \"daily\" or \"0 9 * * 1-5\"");
    return 0;
}

/* Removes the token that names the zone, if there is one. The last field of a cron line may also
 * be a word. */
static int take_zone(struct parser *parser, struct zones *zones)
{
    unsigned last = parser->n_tokens - 1;
    bool named = last > 0 && last != CRON_FIELDS - 1 && token_is_word(parser, last);
    const struct token *token = &parser->tokens[last];
    char name[80];
    int r;

    (void)snprintf(name, sizeof(name), "%.*s", (int)(token->end - token->start), token->start);
    if (strcasecmp(name, "UTC") == 0)
        strcpy(name, "UTC");
    r = zones_get(zones, named ? name : NULL, &parser->calendar->zone);
    parser->n_tokens -= named;
    if (r == ZONE_E_INVALID)
        return fail(parser, named ? token->start : parser->text,
                    "the file of the %s time zone is damaged or in an old format",
                    named ? "named" : "local");
    if (r > 0)
        return fail(parser, token->start,
                    "the time zone must have a name of the IANA database, "
                    "such as UTC or Europe/Berlin");
    return r;
}

static int parse_tokens(struct parser *parser)
{
    const char *word = parser->tokens[0].start;

    if (parser->n_tokens == CRON_FIELDS)
        return parse_cron(parser);
    if (parser->n_tokens > CRON_FIELDS)
        return fail(parser, parser->tokens[CRON_FIELDS].start,
                    "only a time zone may follow the five fields of a cron line");
    if (*word == '@')
        return fail(parser, word,
                    "a word of cron must be @hourly, @daily, @midnight, @weekly, "
                    "@monthly, @yearly or @annually");
    return parse_systemd(parser);
}

int calendar_parse(const char *text, struct zones *zones, struct calendar *ret,
                   struct calendar_error *error)
{
    struct parser parser = {.text = text, .calendar = ret, .error = error};
    const char *expression;
    int r;

    *ret = (struct calendar){
        .years = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
        .months = UINT32_MAX,
        .days = UINT32_MAX,
        .weekdays = 0x7f,
        .hours = 1,
        .minutes = 1,
        .n_seconds = 1,
        .seconds = {{0, 0, (uint32_t)USEC_PER_SEC}},
    };
    r = split(&parser, text);
    if (r == 0)
        r = take_zone(&parser, zones);
    if (r != 0)
        return r;
    expression = parser.n_tokens == 1 ? expression_of_word(&parser.tokens[0]) : NULL;
    if (expression)
        r = split(&parser, expression);
    return r != 0 ? r : parse_tokens(&parser);
}

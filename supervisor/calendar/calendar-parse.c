/* SPDX-License-Identifier: MIT */

/* Reads calendar expressions and cron lines: calendar_parse(). */

#include "shared/base/cleanup.h"
#include "supervisor/calendar/calendar.h"
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CRON_FIELDS 5
#define SECONDS(n)  ((uint32_t)((n)*USEC_PER_SEC))

struct parser {
    const char *text;
    const char *at, *end; /* what is left, without the time zone */
    bool hyphens;         /* in ranges */
    int result;
    struct calendar *calendar;
    struct calendar_error *error;
};

/* Notes the first error. Nothing is left to take then, so parsing ends. */
__attribute__((format(printf, 3, 4))) static void fail(struct parser *parser, const char *at,
                                                       const char *format, ...)
{
    va_list arguments;

    if (parser->result != 0)
        return;
    parser->result = CALENDAR_E_INVALID;
    parser->at = parser->end;
    parser->error->column = (unsigned)(at - parser->text) + 1;
    va_start(arguments, format);
    (void)vsnprintf(parser->error->text, sizeof(parser->error->text), format, arguments);
    va_end(arguments);
}

/* ---- characters ---- */

static char peek(const struct parser *parser)
{
    return parser->at < parser->end ? *parser->at : '\0';
}

static bool next_is(const struct parser *parser, int (*kind)(int))
{
    return kind((unsigned char)peek(parser));
}

static bool take(struct parser *parser, const char *text)
{
    size_t length = strlen(text);

    if ((size_t)(parser->end - parser->at) < length || memcmp(parser->at, text, length) != 0)
        return false;
    parser->at += length;
    return true;
}

/* How often one of the characters occurs in the next word. */
static unsigned count_in_word(const struct parser *parser, const char *characters)
{
    unsigned n = 0;

    for (const char *at = parser->at; at < parser->end && !isblank((unsigned char)*at); at++)
        n += strchr(characters, *at) != NULL;
    return n;
}

/* ---- numbers and names ---- */

/* The numbers that a list may contain. Seconds are counted in microseconds. */
struct field {
    const char *noun, *allowed; /* for errors */
    uint32_t min, max;
    enum calendar_set set;
    const char *const *names; /* of the numbers 0 to max */
};

static const char *const WEEKDAYS[] = {"Sunday",   "Monday", "Tuesday",  "Wednesday",
                                       "Thursday", "Friday", "Saturday", "Sunday"};
static const char *const MONTHS[] = {"",        "January",  "February", "March",  "April",
                                     "May",     "June",     "July",     "August", "September",
                                     "October", "November", "December"};

static const struct field YEAR = {"year", "1970 to 2199", 1970, 2199, CALENDAR_YEARS, NULL};
static const struct field MONTH = {"month", "1 to 12", 1, 12, CALENDAR_MONTHS, NULL};
static const struct field DAY = {"day", "1 to 31", 1, 31, CALENDAR_DAYS, NULL};
static const struct field DAY_TO_LAST = {"day", "1 to 31", 1, 31, CALENDAR_DAYS_TO_LAST, NULL};
static const struct field HOUR = {"hour", "0 to 23", 0, 23, CALENDAR_HOURS, NULL};
static const struct field MINUTE = {"minute", "0 to 59", 0, 59, CALENDAR_MINUTES, NULL};
static const struct field SECOND = {"second", "0 to 59.999999", 0, SECONDS(60) - 1, 0, NULL};
static const struct field WEEKDAY = {"weekday", "Mon to Sun", 1, 7, CALENDAR_WEEKDAYS, WEEKDAYS};
static const struct field CRON_MONTH = {"month", "1 to 12 or Jan to Dec", 1,
                                        12,      CALENDAR_MONTHS,         MONTHS};
static const struct field CRON_WEEKDAY = {
    "day of the week", "0 to 7 or Sun to Sat", 0, 7, CALENDAR_WEEKDAYS, WEEKDAYS};

/* Takes a number of at most four digits. */
static bool take_number(struct parser *parser, uint32_t *ret)
{
    const char *start = parser->at;

    for (*ret = 0; next_is(parser, isdigit) && parser->at - start < 4; parser->at++)
        *ret = *ret * 10 + (uint32_t)(*parser->at - '0');
    return parser->at > start && !next_is(parser, isdigit);
}

/* Takes a number that may have a fraction, which is rounded to microseconds. */
static bool take_seconds(struct parser *parser, uint32_t *ret)
{
    uint32_t scale = SECONDS(1);

    if (!take_number(parser, ret) || *ret >= 3600)
        return false;
    *ret = SECONDS(*ret);
    if (peek(parser) != '.' || parser->end - parser->at < 2 ||
        !isdigit((unsigned char)parser->at[1]))
        return true;
    for (parser->at++; next_is(parser, isdigit); parser->at++) {
        uint32_t digit = (uint32_t)(*parser->at - '0');

        *ret += scale >= 10 ? digit * (scale / 10) : scale == 1 && digit >= 5;
        scale /= 10;
    }
    return true;
}

/* Takes a name or its first three letters, in any case. */
static bool take_name(struct parser *parser, const struct field *field, uint32_t *ret)
{
    const char *start = parser->at;
    size_t length;

    while (next_is(parser, isalpha))
        parser->at++;
    length = (size_t)(parser->at - start);
    for (*ret = field->min; field->names && *ret <= field->max; (*ret)++)
        if ((length == 3 || length == strlen(field->names[*ret])) &&
            strncasecmp(start, field->names[*ret], length) == 0)
            return true;
    return false;
}

static uint32_t take_value(struct parser *parser, const struct field *field)
{
    const char *start = parser->at;
    uint32_t value;
    bool taken;

    if (field == &SECOND)
        taken = take_seconds(parser, &value);
    else if (field != &WEEKDAY && next_is(parser, isdigit))
        taken = take_number(parser, &value);
    else
        taken = take_name(parser, field, &value);
    if (taken && field == &YEAR && value < 100)
        value += value < 70 ? 2000 : 1900;
    if (taken && value >= field->min && value <= field->max)
        return value;
    fail(parser, start, "the %s must be %s", field->noun, field->allowed);
    return field->min;
}

/* ---- lists ---- */

static uint32_t take_step(struct parser *parser, const struct field *field)
{
    const char *start = parser->at;
    uint32_t step;

    if ((field == &SECOND ? take_seconds : take_number)(parser, &step) && step > 0)
        return step;
    fail(parser, start, "a step must be a number from %s",
         field == &SECOND ? "0.000001 to 3599" : "1 to 9999");
    return 1;
}

/* Takes *, start or start..stop, each with a step or without. */
static struct calendar_range take_range(struct parser *parser, const struct field *field)
{
    struct calendar_range range = {field->min, field->max, field == &SECOND ? SECONDS(1) : 1};
    const char *start = parser->at;
    bool all = take(parser, "*"), open = false;

    if (!all) {
        range.start = range.stop = take_value(parser, field);
        open = !take(parser, "..") && !(parser->hyphens && take(parser, "-"));
    }
    if (!all && !open)
        range.stop = take_value(parser, field);
    if (field == &CRON_WEEKDAY && range.stop == 0 && range.start > 0)
        range.stop = 7; /* "FRI-SUN" */
    if (range.stop < range.start)
        fail(parser, start, "a range must not end before it begins");
    if (!take(parser, "/"))
        return range;
    range.step = take_step(parser, field);
    /* Steps go forward in time, so the numbers before the last day become smaller. */
    if (open && field == &DAY_TO_LAST)
        range.start = (range.stop - 1) % range.step + 1;
    else if (open)
        range.stop = field->max;
    return range;
}

static void add_range(struct parser *parser, const struct field *field, struct calendar_range range)
{
    struct calendar *calendar = parser->calendar;

    if (field == &SECOND) {
        if (calendar->n_seconds < CALENDAR_SECONDS_MAX)
            calendar->seconds[calendar->n_seconds++] = range;
        else
            fail(parser, parser->at, "a list of seconds must have at most %d elements",
                 CALENDAR_SECONDS_MAX);
        return;
    }
    for (uint32_t i = range.start; i <= range.stop; i += range.step) {
        uint32_t bit = i;

        if (field == &YEAR)
            bit -= CALENDAR_YEAR_FIRST;
        if (field == &DAY_TO_LAST)
            bit = 32 - bit;
        if (field->set == CALENDAR_WEEKDAYS)
            bit %= 7;
        calendar->sets[field->set + bit / 64] |= UINT64_C(1) << bit % 64;
    }
}

static void add_all(struct parser *parser, const struct field *field)
{
    add_range(parser, field, (struct calendar_range){field->min, field->max, 1});
}

/* For a time without minutes, or without seconds. */
static void add_0(struct parser *parser, const struct field *field)
{
    add_range(parser, field, (struct calendar_range){0, 0, 1});
}

/* "Wed, 17:48" is allowed. */
static void take_list(struct parser *parser, const struct field *field)
{
    do
        add_range(parser, field, take_range(parser, field));
    while (parser->result == 0 && take(parser, ",") &&
           !(field == &WEEKDAY && next_is(parser, isblank)));
}

/* Takes "-", "~", ":" or " ", which stands for blanks or the end. */
static void take_separator(struct parser *parser, const char *separator)
{
    const char *start = parser->at;

    while (*separator == ' ' && next_is(parser, isblank))
        parser->at++;
    if (*separator == ' ' ? parser->at > start || start == parser->end : take(parser, separator))
        return;
    fail(parser, start, "only a comma, %s, / or \"%s\" may follow", parser->hyphens ? "-" : "..",
         separator);
}

/* Takes lists with separators between them, and blanks or the end after them. */
static void take_lists(struct parser *parser, const struct field *const *fields, unsigned n,
                       const char *separator)
{
    for (unsigned i = 0; i < n; i++) {
        if (i > 0)
            take_separator(parser, fields[i] == &DAY_TO_LAST ? "~" : separator);
        take_list(parser, fields[i]);
    }
    take_separator(parser, " ");
}

/* ---- expressions of systemd ---- */

/* [year-]month-day or [year-]month~day */
static void parse_date(struct parser *parser)
{
    static const struct field *const fields[] = {&YEAR, &MONTH, &DAY};
    static const struct field *const fields_to_last[] = {&YEAR, &MONTH, &DAY_TO_LAST};
    unsigned n = count_in_word(parser, "-~");
    bool to_last = count_in_word(parser, "~") > 0, year = n > 1;

    if (!year)
        add_all(parser, &YEAR);
    if (n > 0) {
        take_lists(parser, (to_last ? fields_to_last : fields) + !year, 2 + year, "-");
    } else {
        add_all(parser, &MONTH);
        add_all(parser, &DAY);
    }
}

/* hour:minute[:second] */
static void parse_time(struct parser *parser)
{
    static const struct field *const fields[] = {&HOUR, &MINUTE, &SECOND};
    unsigned n = count_in_word(parser, ":");

    if (n < 2)
        add_0(parser, &SECOND);
    if (n > 0) {
        take_lists(parser, fields, n > 1 ? 3 : 2, ":");
    } else {
        add_0(parser, &HOUR);
        add_0(parser, &MINUTE);
    }
}

static void parse_systemd(struct parser *parser)
{
    static const struct field *const weekday = &WEEKDAY;

    parser->hyphens = true;
    if (next_is(parser, isalpha))
        take_lists(parser, &weekday, 1, "");
    else
        add_all(parser, &WEEKDAY);
    parser->hyphens = false;
    parse_date(parser);
    parse_time(parser);
    if (parser->at < parser->end)
        fail(parser, parser->at,
             "there must be weekdays, a date with - or ~, a time with :, and a time zone, in this "
             "order; or the five fields of a cron line");
}

/* ---- cron lines ---- */

static void parse_cron(struct parser *parser)
{
    static const struct field *const fields[CRON_FIELDS] = {&MINUTE, &HOUR, &DAY, &CRON_MONTH,
                                                            &CRON_WEEKDAY};

    parser->hyphens = true;
    parser->calendar->either_day = true;
    add_all(parser, &YEAR);
    add_0(parser, &SECOND);
    for (unsigned i = 0; i < CRON_FIELDS; i++) {
        if (peek(parser) == '*' && (fields[i] == &DAY || fields[i] == &CRON_WEEKDAY))
            parser->calendar->either_day = false;
        take_lists(parser, &fields[i], 1, "");
    }
}

/* ---- the whole ---- */

/* Cron also has these words, with an @. Those with an @ in this table mean something else there. */
static const struct {
    const char *word, *expression;
} WORDS[] = {
    {"minutely", "*:*"},
    {"hourly", "*:00"},
    {"daily", "*-*"},
    {"weekly", "Mon"},
    {"monthly", "*-01"},
    {"quarterly", "01,04,07,10-01"},
    {"semiannually", "01,07-01"},
    {"yearly", "01-01"},
    {"annually", "01-01"},
    {"@weekly", "Sun"},
    {"@midnight", "*-*"},
};

static void replace_word(struct parser *parser)
{
    const char *word = parser->at;
    size_t length = (size_t)(parser->end - word);

    for (size_t i = ELEMENTS(WORDS); i-- > 0;) {
        bool at = *word == '@' && *WORDS[i].word != '@';

        if (strlen(WORDS[i].word) + at == length &&
            strncasecmp(WORDS[i].word, word + at, length - at) == 0) {
            parser->at = WORDS[i].expression;
            parser->end = parser->at + strlen(parser->at);
            return;
        }
    }
    if (*word == '@')
        fail(parser, word,
             "a word after @ must be hourly, daily, midnight, weekly, monthly or yearly");
}

/* `word` is what may be the name of a zone, or NULL. */
static void take_zone(struct parser *parser, const char *word, struct zones *zones)
{
    const char *start = word ? word : parser->text;
    char name[80] = "";
    int r;

    if (word) {
        (void)snprintf(name, sizeof(name), "%.*s", (int)(parser->end - word), word);
        parser->end = word;
    }
    if (strcasecmp(name, "UTC") == 0)
        strcpy(name, "UTC");
    r = zones_get(zones, word ? name : NULL, &parser->calendar->zone);
    if (r == ZONE_E_MISSING)
        fail(parser, start,
             "the time zone must be one of the IANA database, such as UTC or Europe/Berlin");
    else if (r > 0)
        fail(parser, start, "the file of the %s time zone is damaged or in an old format",
             word ? "named" : "local");
    else
        parser->result = r;
}

static void trim(struct parser *parser)
{
    while (next_is(parser, isblank))
        parser->at++;
    while (parser->end > parser->at && isblank((unsigned char)parser->end[-1]))
        parser->end--;
}

/* Counts the words; `*ret_last` is where the last one begins. */
static unsigned count_words(const struct parser *parser, const char **ret_last)
{
    bool before = false;
    unsigned n = 0;

    for (const char *at = parser->at; at < parser->end; at++) {
        bool in_word = !isblank((unsigned char)*at);

        if (in_word && !before) {
            *ret_last = at;
            n++;
        }
        before = in_word;
    }
    return n;
}

int calendar_parse(const char *text, struct zones *zones, struct calendar *ret,
                   struct calendar_error *error)
{
    struct parser parser = {text, text, text + strlen(text), .calendar = ret, .error = error};
    const char *last = text;
    unsigned n_words;
    bool zone;

    *ret = (struct calendar){0};
    trim(&parser);
    n_words = count_words(&parser, &last);
    /* The last of five words is a field of a cron line. */
    zone = n_words > 1 && n_words != CRON_FIELDS && isalpha((unsigned char)*last);
    take_zone(&parser, zone ? last : NULL, zones);
    if (n_words == 0)
        fail(&parser, text, "it must be like \"Mon..Fri 09:00\", \"daily\" or \"0 9 * * 1-5\"");
    if (n_words - zone > CRON_FIELDS)
        fail(&parser, last, "only a time zone may follow the five fields of a cron line");
    trim(&parser);
    replace_word(&parser);
    if (n_words - zone == CRON_FIELDS)
        parse_cron(&parser);
    else
        parse_systemd(&parser);
    return parser.result;
}

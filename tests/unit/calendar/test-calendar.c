/* SPDX-License-Identifier: MIT */
#include "supervisor/calendar/calendar.h"
#include "supervisor/calendar/date.h"
#include "tests/unit/suite.h"
#include <inttypes.h>
#include <time.h>

/* ---- helpers ---- */

/* "2024-02-29 12:00:00" or with a fraction, in UTC. */
static usec_t at(const char *text)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%d %H:%M:%S", &tm);
    double fraction = rest && *rest == '.' ? atof(rest) : 0;

    ck_assert_msg(rest != NULL, "not a time: %s", text);
    return (usec_t)timegm(&tm) * USEC_PER_SEC + (usec_t)(fraction * 1e6 + 0.5);
}

static void format(usec_t usec, char to[40])
{
    time_t seconds = (time_t)(usec / USEC_PER_SEC);
    struct tm tm;
    size_t length;

    gmtime_r(&seconds, &tm);
    length = strftime(to, 40, "%Y-%m-%d %H:%M:%S", &tm);
    if (usec % USEC_PER_SEC != 0)
        snprintf(to + length, 40 - length, ".%06u", (unsigned)(usec % USEC_PER_SEC));
}

/* ---- the program as an oracle's counterpart ---- */

/*
 * Reads lines "BASE COUNT EXPRESSION", with BASE in microseconds, and answers each with a line: the
 * slots after BASE, in microseconds, then "end" if there are fewer than COUNT; or "error COLUMN
 * TEXT".
 */
static void answer(char *line, struct zones *zones)
{
    struct calendar calendar;
    struct calendar_error error;
    usec_t time;
    int n, offset, r;

    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "%" SCNu64 " %d %n", &time, &n, &offset) < 2)
        abort();
    r = calendar_parse(line + offset, zones, &calendar, &error);
    if (r == CALENDAR_E_INVALID)
        printf("error %u %s", error.column, error.text);
    else if (r != 0)
        abort();
    while (r == 0 && n-- > 0) {
        r = calendar_next(&calendar, time, &time);
        if (r == 0)
            printf("%" PRIu64 " ", time);
        else
            printf("end");
    }
    printf("\n");
}

static int answer_all(void)
{
    struct zones zones = ZONES_NULL;
    char line[1024];

    while (fgets(line, sizeof(line), stdin)) {
        answer(line, &zones);
        fflush(stdout);
    }
    zones_deinit(&zones);
    return 0;
}

const struct suite suite = {.argument = "slots", .with_argument = answer_all};

/* ---- slots ---- */

static const struct {
    const char *expression, *after, *slots; /* up to three, separated by commas; "" for none */
} SLOTS[] = {
    {"daily UTC", "2024-02-28 12:00:00", "2024-02-29 00:00:00, 2024-03-01 00:00:00"},
};

static void list_slots(const char *expression, const char *after, char *to, size_t size)
{
    struct zones zones = ZONES_NULL;
    struct calendar calendar;
    struct calendar_error error = {0};
    usec_t time = at(after);
    size_t length = 0;
    char slot[40];
    int r = calendar_parse(expression, &zones, &calendar, &error);

    ck_assert_msg(r == 0, "%s: %d, column %u: %s", expression, r, error.column, error.text);
    to[0] = '\0';
    for (int i = 0; i < 3 && calendar_next(&calendar, time, &time) == 0; i++) {
        format(time, slot);
        length += (size_t)snprintf(to + length, size - length, "%s%s", i > 0 ? ", " : "", slot);
    }
    zones_deinit(&zones);
}

TEST(slots_are_those_of_the_table, .n = ELEMENTS(SLOTS))
{
    char slots[200];

    list_slots(SLOTS[_i].expression, SLOTS[_i].after, slots, sizeof(slots));
    ck_assert_msg(strncmp(slots, SLOTS[_i].slots, strlen(SLOTS[_i].slots)) == 0, "%s: %s",
                  SLOTS[_i].expression, slots);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/show.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <string.h>

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
    {"busy", GREEN, "●"},
    {"stopping", YELLOW, "●"},
    {"killing", RED, "●"},
    {"backoff", YELLOW, "○"},
    /* jobs */
    {"queued", PLAIN, "○"},
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

const char *show_state_color(const char *state)
{
    return look_of(state)->color;
}

const char *show_state_dot(const char *state)
{
    return look_of(state)->dot;
}

/* Returns the beginning of the last `limit` lines. */
static const char *tail(const char *text, unsigned limit)
{
    const char *at = text + strlen(text);

    if (at > text && at[-1] == '\n')
        at--;
    while (at > text) {
        if (at[-1] == '\n' && --limit == 0)
            break;
        at--;
    }
    return at;
}

void show_quoted(const struct terminal *terminal, const char *indent, const char *text,
                 unsigned limit)
{
    if (*text == '\0')
        return;
    text = tail(text, limit);
    while (*text != '\0') {
        const char *end = strchrnul(text, '\n');
        char *line = strndup(text, (size_t)(end - text));

        if (line)
            terminal_print(terminal, "%s" DIM "│" PLAIN " %s", indent, SAFE_LINE(line));
        free(line);
        text = *end == '\0' ? end : end + 1;
    }
}

void show_restricted(const struct terminal *terminal, const char *label, const json_t *object)
{
    if (field_true(object, "restricted"))
        terminal_print(terminal, "%s" DIM SHOW_RESTRICTED PLAIN, label);
}

char *show_last_line(char *buffer, size_t size, const char *text)
{
    const char *line = tail(text, 1);
    char *copy = strndup(line, strcspn(line, "\n"));

    format_safe(buffer, size, copy ? copy : "");
    free(copy);
    return buffer;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/show.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <string.h>

/* How many lines of a payload are shown. */
#define PAYLOAD_LINES 20

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

char *show_dot(char buffer[SHOW_STATE_SIZE], const char *state)
{
    snprintf(buffer, SHOW_STATE_SIZE, "%s%s" PLAIN, look_of(state)->color, look_of(state)->dot);
    return buffer;
}

char *show_state(char buffer[SHOW_STATE_SIZE], const char *state, const char *text)
{
    char safe[SHOW_STATE_SIZE - 2];

    snprintf(buffer, SHOW_STATE_SIZE, "%s%s" PLAIN, look_of(state)->color,
             format_safe(safe, sizeof(safe), text));
    return buffer;
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

void show_more_lines(const struct terminal *terminal, const char *indent, const char *text)
{
    const char *end = strchr(text, '\n');

    if (end)
        show_quoted(terminal, indent, end + 1, PAYLOAD_LINES);
}

void show_payload(const struct terminal *terminal, const char *label, const json_t *object,
                  const char *name)
{
    bool text = field_is(json_object_get(object, name), "encoding", "utf8");
    _cleanup_free_ char *data = NULL;
    size_t size;

    if (field_payload(object, name, &data, &size) < 0 || !data)
        return;
    terminal_print(terminal, "%s%s%s", label, BYTES(size),
                   text ? "" : ", not text (--json shows it in base64)");
    if (text)
        show_quoted(terminal, "            ", data, PAYLOAD_LINES);
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

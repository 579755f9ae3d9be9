/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/show.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <string.h>

/* How many lines of a payload are shown. */
#define PAYLOAD_LINES 20

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

void show_kept_back(const struct terminal *terminal, const char *label, const json_t *info,
                    const char *part)
{
    const json_t *mistakes = json_object_get(info, "kept_back");

    for (size_t i = 0; i < json_array_size(mistakes); i++) {
        const char *mistake = json_string_value(json_array_get(mistakes, i));

        if (mistake && strstr(mistake, part))
            terminal_print(terminal, "%s" RED "cannot start" PLAIN ": %s", label,
                           SAFE_LINE(mistake));
    }
}

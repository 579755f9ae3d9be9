/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/map/map-output.h"

#include "supervisor/ctl/command/output.h"
#include "supervisor/ctl/command/verb-options.h"
#include "supervisor/ctl/map/window.h"
#include "supervisor/ctl/text/field.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *state_of(const struct troupe_result *result)
{
    if (result->error == 0)
        return troupe_end_name(result->end);
    return result->error == -ECONNRESET ? "unknown" : "refused";
}

static void print_json(const struct options *options, const struct window_line *line)
{
    const struct troupe_result *result = &line->result;
    bool refused = result->error < 0;
    json_t *object;

    object = json_pack("{s:I, s:s, s:s*, s:i, s:i, s:s*, s:o*}", "line",
                       (json_int_t)line->number + 1, "state", state_of(result), "id",
                       *result->id ? result->id : NULL, "attempts", (int)result->attempts, "code",
                       result->code, "reason", *result->reason ? result->reason : NULL, "result",
                       refused ? NULL : field_payload_new(result->data, result->size));
    if (object && options->tag)
        json_object_set_new(object, "input", field_payload_new(line->input, line->size));
    if (object)
        (void)output_write(object, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
}

/* Escapes newlines, because each result has one line. */
static void print_on_one_line(const char *data, size_t size)
{
    const char *end = data + size;

    if (size > 0 && end[-1] == '\n')
        end--;
    while (data < end) {
        const char *newline = memchr(data, '\n', (size_t)(end - data));
        const char *stop_at = newline ? newline : end;

        fwrite(data, 1, (size_t)(stop_at - data), stdout);
        if (newline)
            fputs("\\n", stdout);
        data = newline ? newline + 1 : end;
    }
}

void map_output_write(const struct options *options, const struct window_line *line)
{
    const struct troupe_result *result = &line->result;
    /* Reasons go to standard error. */
    bool succeeded = result->error == 0 && result->end == TROUPE_SUCCEEDED;

    if (options->json) {
        print_json(options, line);
        return;
    }
    if (options->tag) {
        fwrite(line->input, 1, line->size, stdout);
        putchar('\t');
    }
    if (succeeded && options->null)
        fwrite(result->data, 1, result->size, stdout);
    else if (succeeded)
        print_on_one_line(result->data, result->size);
    putchar(options->null ? '\0' : '\n');
}

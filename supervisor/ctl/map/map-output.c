/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/map/map-output.h"

#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/command/verb-options.h"
#include "supervisor/ctl/map/window.h"
#include "supervisor/ctl/text/field.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The longest sentence about a refusal; a longer one is cut. */
#define REASON_SIZE 2048

static const char *state_of(const struct troupe_result *result)
{
    if (result->error == 0)
        return troupe_end_name(result->end);
    return result->error == -ECONNRESET ? "unknown" : "refused";
}

static void print_json(const struct options *options, const struct window_line *line,
                       const char *group, const char *file)
{
    const struct troupe_result *result = &line->result;
    bool refused = result->error < 0;
    char text[REASON_SIZE];
    const char *reason = *result->reason ? result->reason : NULL;
    json_t *object;

    if (refused)
        reason = troupe_explain_refused(result->error, group, result->reason, text, sizeof(text));
    object = json_pack("{s:I, s:s, s:s*, s:i, s:i, s:s*, s:s*, s:o*}", "line",
                       (json_int_t)line->number + 1, "state", state_of(result), "id",
                       *result->id ? result->id : NULL, "attempts", (int)result->attempts, "code",
                       result->code, "reason", reason, "file", file, "result",
                       refused || file ? NULL : field_payload_new(result->data, result->size));
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

static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(fd, data, size);

        if (n < 0 && errno != EINTR)
            return -errno;
        data += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Writes the file under another name, and renames it when it is complete. */
static int write_file(const char *path, const struct troupe_result *result)
{
    char part[PATH_MAX];
    int fd, r;

    if (snprintf(part, sizeof(part), "%s.part", path) >= (int)sizeof(part))
        return -ENAMETOOLONG;
    fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    r = write_all(fd, result->data, result->size);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(part, path) < 0)
        r = -errno;
    if (r < 0)
        (void)unlink(part);
    return r;
}

int map_output_write(const struct options *options, const char *group,
                     const struct window_line *line)
{
    const struct troupe_result *result = &line->result;
    /* Reasons go to standard error. */
    bool succeeded = result->error == 0 && result->end == TROUPE_SUCCEEDED;
    char path[PATH_MAX], *file = NULL;
    int r = 0;

    if (succeeded && options->output_directory) {
        file = path;
        if (snprintf(path, sizeof(path), "%s/%" PRIu64, options->output_directory,
                     line->number + 1) >= (int)sizeof(path))
            r = -ENAMETOOLONG;
        else
            r = write_file(path, result);
    }
    if (r < 0)
        return r;
    if (options->json) {
        print_json(options, line, group, file);
        return 0;
    }
    if (options->tag) {
        fwrite(line->input, 1, line->size, stdout);
        putchar('\t');
    }
    if (file)
        fputs(file, stdout);
    else if (succeeded && options->null)
        fwrite(result->data, 1, result->size, stdout);
    else if (succeeded)
        print_on_one_line(result->data, result->size);
    putchar(options->null ? '\0' : '\n');
    return 0;
}

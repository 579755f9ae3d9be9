/* SPDX-License-Identifier: MIT */

/* Explains why a job was refused or did not succeed. */

#include "supervisor/ctl/call/explain.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "supervisor/ctl/command/exit-status.h"
#include "supervisor/ctl/show/show.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/format.h"
#include "worker/troupe.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Longer answers are cut. */
#define ANSWER_MAX ((size_t)64 << 10)

#define SENTENCE_SIZE 2048

static int status_of(int error)
{
    switch (error) {
    case -ECONNRESET:
        return EXIT_UNKNOWN;
    case -EBUSY:
    case -EEXIST:
    case -ENOSPC:
    case -EHOSTDOWN:
    case -ESHUTDOWN:
    case -EUSERS:
        return EXIT_BUSY;
    case -ENOENT:
        return EXIT_NOT_FOUND;
    case -EINVAL:
    case -EMSGSIZE:
        return EXIT_USAGE;
    case -EPERM:
    case -EACCES:
        return EXIT_NOT_PERMITTED;
    case -EPIPE:
        return EXIT_UNREACHABLE;
    default:
        return EXIT_FAILED;
    }
}

int explain_refused(const char *group, int error, const char *reason)
{
    char text[SENTENCE_SIZE];

    complain("%s", troupe_explain_refused(error, group, reason, text, sizeof(text)));
    return status_of(error);
}

int explain_unknown(const char *where, const char *id)
{
    complain("%swhat became of job %s is not known: the supervisor that had it is gone", where, id);
    return EXIT_UNKNOWN;
}

int explain_status(const struct troupe_result *result)
{
    return result->error < 0 ? status_of(result->error) : EXIT_FAILED;
}

static const char *end_phrase(enum troupe_end end)
{
    switch (end) {
    case TROUPE_REJECTED:
        return "was rejected";
    case TROUPE_CANCELLED:
        return "was cancelled";
    case TROUPE_DEAD:
        return "is dead";
    default:
        return "ended";
    }
}

/* The worker's answer if it is a single line, which is appended to the message; otherwise NULL. */
static char *answer_line(const struct troupe_result *result)
{
    const char *data = result->data;
    size_t size = result->size;

    while (size > 0 && data[size - 1] == '\n')
        size--;
    if (size == 0 || size > ANSWER_MAX || memchr(data, '\n', size) || !utf8_is_text(data, size))
        return NULL;
    return strndup(data, size);
}

/* Prints the worker's answer below the message. */
static void show_answer(const struct troupe_result *result)
{
    struct terminal terminal;
    _cleanup_free_ char *text = NULL;

    if (result->size > ANSWER_MAX || !utf8_is_text(result->data, result->size)) {
        complain("its answer has %s%s; --json shows it", BYTES(result->size),
                 result->size > ANSWER_MAX ? "" : " and is not text");
        return;
    }
    text = strndup(result->data, result->size);
    if (!text)
        return;
    terminal_init(&terminal, stderr);
    terminal.colors = false;
    terminal.width = 0;
    show_quoted(&terminal, "  ", text, UINT_MAX);
}

int explain_end(const char *where, const struct troupe_result *result)
{
    _cleanup_free_ char *line = answer_line(result);
    char code[32] = "", attempts[64] = "";
    /* A reason such as "cancelled by uid 0" already contains the phrase. */
    bool named = result->end == TROUPE_CANCELLED && strncmp(result->reason, "cancelled", 9) == 0;
    const char *reason = named ? "" : result->reason;
    const char *phrase = named ? result->reason : end_phrase(result->end);
    /* The reason may repeat the answer. */
    bool repeats = line && strstr(reason, line);

    if (result->code != 0)
        snprintf(code, sizeof(code), " (code %d)", result->code);
    if (result->attempts > 1)
        snprintf(attempts, sizeof(attempts), " after %u attempts", result->attempts);
    if (line && !repeats && *reason == '\0')
        reason = line;
    complain("%sjob %s %s%s%s%s%s%s", where, result->id, named ? "was " : "", phrase, attempts,
             code, *reason ? ": " : "", reason);
    if (result->size > 0 && reason != line && !repeats)
        show_answer(result);
    return EXIT_FAILED;
}

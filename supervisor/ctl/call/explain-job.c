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

static const struct refusal {
    int error;
    int status;
    const char *text; /* NULL = that of errno */
} refusals[] = {
    {-ECONNRESET, EXIT_UNKNOWN, "the supervisor that had it is gone"},
    {-EBUSY, EXIT_BUSY, "its queue is full (QueueMax=, QueueMemoryMax=)"},
    {-EEXIST, EXIT_BUSY, "a job with this id exists: it is live, or its result is still kept"},
    {-ENOSPC, EXIT_BUSY, "no cell for another key (CellsMax=), or its disk is full (Durable=yes)"},
    {-EIO, EXIT_FAILED, "its jobs cannot be written to disk (Durable=yes): see troupectl status"},
    {-EHOSTDOWN, EXIT_BUSY, "it is drained and takes no new jobs until it is resumed"},
    {-EBADMSG, EXIT_FAILED, "its file has a mistake: see troupectl status"},
    {-ESHUTDOWN, EXIT_BUSY, "the supervisor is stopping"},
    {-EUSERS, EXIT_BUSY, NULL},
    {-ENOENT, EXIT_NOT_FOUND, "the group no longer exists"},
    {-EINVAL, EXIT_USAGE, "the id, the key or an option is missing or malformed"},
    {-EMSGSIZE, EXIT_USAGE, "the payload is too large"},
    {-EPERM, EXIT_NOT_PERMITTED, "creating jobs needs root, the supervisor's user or AdminGroup="},
    {-EACCES, EXIT_NOT_PERMITTED, NULL},
    {-EOPNOTSUPP, EXIT_FAILED,
     "it is a plain service (Type=service), which has no queue and takes no jobs"},
    {0, EXIT_FAILED, NULL},
};

static const struct refusal *find_refusal(int error)
{
    const struct refusal *refusal = refusals;

    while (refusal->error != error && refusal->error != 0)
        refusal++;
    return refusal;
}

int explain_refused(const char *group, int error, const char *reason)
{
    const struct refusal *refusal = find_refusal(error);

    if (error == -EPIPE)
        return explain_broken(error);
    complain("group '%s' refused the job: %s%s%s%s", group,
             refusal->text ? refusal->text : strerror(-error), *reason ? " (" : "", reason,
             *reason ? ")" : "");
    return refusal->status;
}

int explain_unknown(const char *where, const char *id)
{
    complain("%swhat became of job %s is not known: the supervisor that had it is gone", where, id);
    return EXIT_UNKNOWN;
}

int explain_status(const struct troupe_result *result)
{
    if (result->error == -EPIPE)
        return EXIT_UNREACHABLE;
    return result->error < 0 ? find_refusal(result->error)->status : EXIT_FAILED;
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
    terminal_init(&terminal, stderr, TERMINAL_COLOR_NEVER);
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

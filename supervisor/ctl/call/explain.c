/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/explain.h"

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "shared/protocol/sentence.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SENTENCE_SIZE 2048

/* The statuses of errors of the supervisor and of libtroupe. */
static const struct {
    int error;
    int status;
} statuses[] = {
    {-ENOENT, EXIT_NOT_FOUND},     {-ESRCH, EXIT_NOT_FOUND},   {-EPERM, EXIT_NOT_PERMITTED},
    {-EACCES, EXIT_NOT_PERMITTED}, {-EINVAL, EXIT_USAGE},      {-EMSGSIZE, EXIT_USAGE},
    {-EBADMSG, EXIT_INVALID},      {-EBUSY, EXIT_BUSY},        {-EALREADY, EXIT_BUSY},
    {-ENOTUNIQ, EXIT_TAKEN},       {-EEXIST, EXIT_BUSY},       {-EHOSTDOWN, EXIT_BUSY},
    {-ENOSPC, EXIT_BUSY},          {-ERESTART, EXIT_BUSY},     {-ESHUTDOWN, EXIT_BUSY},
    {-EUSERS, EXIT_BUSY},          {-ETIMEDOUT, EXIT_TIMEOUT}, {-EPIPE, EXIT_UNREACHABLE},
    {-ECONNRESET, EXIT_UNKNOWN},
};

static int status_of(int error)
{
    for (size_t i = 0; i < ELEMENTS(statuses); i++)
        if (statuses[i].error == error)
            return statuses[i].status;
    return EXIT_FAILED;
}

static bool has(const void *parameters, const char *member)
{
    return field_has(parameters, member);
}

static void write_option(FILE *file, const char *parameter)
{
    const struct option *option = option_of_parameter(parameter, strlen(parameter));

    fprintf(file, "%s%s", option ? "--" : "", option ? option->name : parameter);
}

static void write_member(FILE *file, const void *parameters, const char *name, const char *format)
{
    if (strcmp(name, "option") == 0)
        write_option(file, field_text(parameters, name));
    else if (strcmp(format, "count") == 0)
        fputs(COUNT(field_count(parameters, name)), file);
    else if (strcmp(format, "bytes") == 0)
        fputs(BYTES(field_count(parameters, name)), file);
    else if (strcmp(format, "length") == 0)
        fprintf(file, "%zu", json_array_size(json_object_get(parameters, name)));
    else if (json_is_integer(json_object_get(parameters, name)))
        fprintf(file, "%lld", (long long)field_int(parameters, name));
    else
        fputs(field_text(parameters, name), file);
}

/* Writes an error of a newer supervisor: "queue too long: group a, maximum 5". */
static void write_unknown(FILE *file, const char *error, const json_t *parameters)
{
    const char *separator = ": ", *key;
    json_t *value;

    fputs("the supervisor refused: ", file);
    sentence_write_name(file, error);
    json_object_foreach((json_t *)(uintptr_t)parameters, key, value)
    {
        if (!json_is_string(value) && !json_is_integer(value))
            continue;
        fprintf(file, "%s%s ", separator, key);
        write_member(file, parameters, key, "");
        separator = ", ";
    }
}

size_t explain_problems(const json_t *problems)
{
    for (size_t i = 0; i < json_array_size(problems); i++) {
        const char *problem = json_string_value(json_array_get(problems, i));

        fprintf(stderr, "%s\n", SAFE_LINE(problem ? problem : ""));
    }
    return json_array_size(problems);
}

/* Everything that needs a permission is permitted to root. */
#define AS_ROOT "; root may: 'sudo troupectl ...'"

static const char *who_may(const struct sentence *sentence)
{
    return sentence && sentence->error == -EPERM && geteuid() != 0 ? AS_ROOT : "";
}

int explain_error(const char *error, const json_t *parameters)
{
    const struct sentence *sentence = sentence_find(error, has, parameters);
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *file;

    (void)explain_problems(json_object_get(parameters, "problems"));
    file = open_memstream(&text, &size);
    if (file && sentence)
        sentence_write(file, sentence, write_member, parameters);
    else if (file)
        write_unknown(file, error, parameters);
    if (!file || fclose(file) != 0)
        return EXIT_FAILED;
    complain_unknown(field_text(parameters, "nearest"),
                     sentence && sentence->hint ? sentence->hint : who_may(sentence), "%s", text);
    return sentence ? status_of(sentence->error) : EXIT_FAILED;
}

/* ---- connections ---- */

int explain_connect(const char *socket, int error)
{
    char text[SENTENCE_SIZE];

    complain("%s%s", troupe_explain_connect(error, socket, text, sizeof(text)),
             status_of(error) == EXIT_NOT_PERMITTED && geteuid() != 0 ? AS_ROOT : "");
    if (error == -EAGAIN)
        return EXIT_BUSY;
    return status_of(error) == EXIT_NOT_PERMITTED || status_of(error) == EXIT_BUSY
               ? status_of(error)
               : EXIT_UNREACHABLE;
}

static const struct reason {
    int error;
    int status;
    const char *text;
} broken_reasons[] = {
    {-ECONNRESET, EXIT_UNREACHABLE, "the supervisor closed the connection, or is gone"},
    {-EPIPE, EXIT_UNREACHABLE, "the supervisor closed the connection, or is gone"},
    {-ETIMEDOUT, EXIT_TIMEOUT,
     "no answer in time: the supervisor is busy, or hangs (--timeout waits longer)"},
    {-EPROTO, EXIT_UNREACHABLE,
     "the answer does not follow the Varlink protocol: is it trouped at this socket?"},
    {-EMSGSIZE, EXIT_USAGE, "the request is larger than the supervisor accepts (1 MiB)"},
    {-ENOMEM, EXIT_FAILED, "out of memory"},
    {0, EXIT_UNREACHABLE, "the connection to the supervisor failed: "},
};

int explain_broken(int error)
{
    const struct reason *reason = broken_reasons;

    while (reason->error != error && reason->error != 0)
        reason++;
    complain("%s%s", reason->text, reason->error == 0 ? strerror(-error) : "");
    return reason->status;
}

/* ---- jobs ---- */

/* Longer answers are cut. */
#define ANSWER_MAX ((size_t)64 << 10)

/* Like troupe_explain_refused(), but names the option: "delay_usec: at most 366 days" is about
 * --delay. */
static const char *refusal_text(int error, const char *group, const char *reason,
                                char text[SENTENCE_SIZE])
{
    const size_t length = reason ? strcspn(reason, ":") : 0;
    const struct option *option =
        length > 0 && reason[length] == ':' ? option_of_parameter(reason, length) : NULL;
    char named[SENTENCE_SIZE];

    if (option)
        (void)snprintf(named, sizeof(named), "--%s%s", option->name, reason + length);
    return troupe_explain_refused(error, group, option ? named : reason, text, SENTENCE_SIZE);
}

int explain_refused(const char *where, const char *group, int error, const char *reason)
{
    char text[SENTENCE_SIZE];

    complain("%s%s", where, refusal_text(error, group, reason, text));
    return status_of(error);
}

int explain_unknown(const char *where, const char *id, const char *reason)
{
    complain("%swhat became of job %s is not known: %s", where, id,
             reason && *reason ? reason : "the supervisor that had it is gone");
    return EXIT_UNKNOWN;
}

static const char *state_of(const struct troupe_result *result)
{
    if (result->error == 0)
        return troupe_end_name(result->end);
    return result->error == -ECONNRESET ? "unknown" : "refused";
}

json_t *explain_json(const char *group, const struct troupe_result *result, const char *file)
{
    const bool refused = result->error < 0;
    const char *reason = *result->reason ? result->reason : NULL;
    char text[SENTENCE_SIZE];

    if (refused)
        reason = refusal_text(result->error, group, result->reason, text);
    return json_pack("{s:s, s:s*, s:i, s:i, s:s*, s:s*, s:o*}", "state", state_of(result), "id",
                     *result->id ? result->id : NULL, "attempts", (int)result->attempts, "code",
                     result->code, "reason", reason, "file", file, "result",
                     refused || file ? NULL : field_payload_new(result->data, result->size));
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

/* The worker's answer without newlines at its end, cut after ANSWER_MAX; NULL if it is not text. */
static char *answer_text(const struct troupe_result *result)
{
    const char *data = result->data;
    size_t size = result->size;

    if (!utf8_is_text(data, size))
        return NULL;
    while (size > 0 && data[size - 1] == '\n')
        size--;
    return strndup(data, size < ANSWER_MAX ? size : ANSWER_MAX);
}

int explain_end(const char *where, const struct troupe_result *result)
{
    _cleanup_free_ char *answer = answer_text(result);
    char code[32] = "", attempts[64] = "";
    /* A reason such as "cancelled by uid 0" already contains the phrase. */
    const bool named =
        result->end == TROUPE_CANCELLED && strncmp(result->reason, "cancelled", 9) == 0;
    const char *phrase = named ? result->reason : end_phrase(result->end);
    const char *reason = named ? "" : *result->reason || !answer ? result->reason : answer;

    if (result->code != 0)
        snprintf(code, sizeof(code), " (code %d)", result->code);
    if (result->attempts > 1)
        snprintf(attempts, sizeof(attempts), " after %u attempts", result->attempts);
    complain("%sjob %s %s%s%s%s%s%s", where, result->id, named ? "was " : "", phrase, attempts,
             code, *reason ? ": " : "", reason);
    if (!answer)
        complain("its answer has %s and is not text; --json shows it", BYTES(result->size));
    else if (!strstr(reason, answer))
        complain("its answer: %s", answer);
    return EXIT_FAILED;
}

int explain_result(const char *where, const char *group, const struct troupe_result *result)
{
    if (result->error == -ECONNRESET)
        return explain_unknown(where, result->id, result->reason);
    return result->error == 0 ? explain_end(where, result)
                              : explain_refused(where, group, result->error, result->reason);
}

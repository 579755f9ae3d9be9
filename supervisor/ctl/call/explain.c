/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/explain.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/command/exit-status.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <string.h>

struct explanation {
    const char *error; /* without the interface: equal names mean the same in all of them */
    int status;
    /* {name} stands for that member, {name:count} and {name:bytes} for a number, {name:length} for
     * the number of items. */
    const char *sentence;
    const char *hint;   /* follows unless the reply suggests a similar name; NULL = none */
    const char *member; /* the entry applies only to errors with this member; NULL = to all */
};

/* clang-format off */
static const struct explanation explanations[] = {
    {"NoSuchTarget", .status = EXIT_NOT_FOUND,
     "there is no group, cell or worker '{target}'", "; 'troupectl status' lists them"},
    {"NoSuchGroup", .status = EXIT_NOT_FOUND,
     "there is no group '{group}'", "; 'troupectl status' lists them"},
    {"NoSuchJob", .status = EXIT_NOT_FOUND,
     "there is no job '{id}': it never existed, or its result is no longer kept",
     "; 'troupectl dead-letters' lists dead jobs"},
    {"NoSuchActor", .status = EXIT_NOT_FOUND,
     "'{name}' is no actor: {reason}", .member = "reason"},
    {"NoSuchActor", .status = EXIT_NOT_FOUND,
     "there is no actor '{name}'", "; 'troupectl actors' lists them"},
    {"NoSuchExchange", .status = EXIT_NOT_FOUND,
     "there is no exchange '{name}'", "; 'troupectl exchanges' lists them"},
    {"NoSuchTimer", .status = EXIT_NOT_FOUND,
     "there is no timer {id}", "; 'troupectl timers' lists them"},
    {"NoSuchDeadLetter", .status = EXIT_NOT_FOUND,
     "there is no dead letter {id}",
     "; 'troupectl dead-letters' and 'troupectl errors' list them"},
    {"NotPermitted", .status = EXIT_NOT_PERMITTED, "not permitted: this needs {needed}"},
    {"BadSize", .status = EXIT_USAGE,
     "a pool of {size} workers is not possible; allowed: {minimum} to {maximum}"},
    {"BadId", .status = EXIT_USAGE, "'{id}' cannot be a job's id; allowed: {allowed}"},
    {"BadOption", .status = EXIT_USAGE, "'{option}' is missing or wrong; allowed: {allowed}"},
    {"BadPayload", .status = EXIT_USAGE, "the supervisor refused the payload: {problem}"},
    {"BadConfiguration", .status = EXIT_INVALID,
     "problems in the configuration: {problems:length}; nothing was changed"},
    {"NotConfigured", .status = EXIT_FAILED,
     "the configuration has a problem: {problem}; what runs goes on, and the rest waits until it is "
     "solved"},
    {"NotUpgraded", .status = EXIT_FAILED, "nothing has changed: {reason}"},
    {"NotAnActor", .status = EXIT_FAILED,
     "group '{group}' is a plain service (Type=service): it has no queue and takes no jobs"},
    {"Busy", .status = EXIT_BUSY,
     "the queue of group '{group}' is full: {queued:count} of {maximum:count} jobs "
     "(QueueMax=, QueueMemoryMax=)"},
    {"TooManyCells", .status = EXIT_BUSY,
     "group '{group}' has no cell for another key: {maximum:count} is its limit (CellsMax=)"},
    {"StoreFull", .status = EXIT_BUSY,
     "group '{group}' keeps its jobs on disk (Durable=yes), which is full: {problem}"},
    {"StoreFailed", .status = EXIT_FAILED,
     "group '{group}' keeps its jobs on disk (Durable=yes), which fails: {problem}",
     .member = "group"},
    {"StoreFailed", .status = EXIT_FAILED,
     "it may be on disk, which could not be read: {problem}"},
    {"Draining", .status = EXIT_BUSY,
     "group '{group}' is drained and takes no new jobs; 'troupectl resume {group}' ends that"},
    {"JobExists", .status = EXIT_BUSY,
     "a job '{id}' exists: it is live, or its result is still kept"},
    {"NameExists", .status = EXIT_BUSY,
     "the name '{name}' is in use: groups, exchanges and actors share one name space"},
    {"TooMany", .status = EXIT_BUSY, "there are too many {what} already"},
    {"CancelAlreadyRequested", .status = EXIT_BUSY,
     "cancellation of job '{id}' has already been requested"},
    {"AlreadyEnded", .status = EXIT_FAILED, "job '{id}' has already ended: {state}"},
    {"NoStore", .status = EXIT_FAILED,
     "there is nothing to back up: no group has Durable=yes"},
    {"BackupRunning", .status = EXIT_BUSY, "another backup is being made"},
    {"BackupFailed", .status = EXIT_FAILED, "the backup has failed: {reason}"},
    {"NotReached", .status = EXIT_FAILED,
     "{target} will not get there: {state}",
     "; see 'troupectl status' and 'troupectl deaths'"},
    {"MailboxFull", .status = EXIT_BUSY,
     "the mailbox of '{name}' is full (MailboxMax=, MailboxMemoryMax=): "
     "the message is a dead letter"},
    {"NoMatch", .status = EXIT_FAILED,
     "exchange '{exchange}' has no subscription for this: the message is a dead letter"},
    {"TimedOut", .status = EXIT_TIMEOUT, "nobody replied in time (--timeout)"},
    {"Failed", .status = EXIT_FAILED, "no reply will come: {reason}"},
    {"Declared", .status = EXIT_FAILED,
     "exchange '{name}' is declared by a file: remove {name}.exchange and run 'troupectl reload'"},
    {"NotRequeued", .status = EXIT_FAILED,
     "dead letter {id} cannot be sent again and stays: {problem}"},

    {"Restarting", .status = EXIT_BUSY, "the supervisor is restarting: try again"},
    {"Stopping", .status = EXIT_BUSY, "the supervisor is stopping and accepts nothing new"},
    {"TooManyClients", .status = EXIT_BUSY,
     "the supervisor accepts no further client of this user: {maximum:count} is the limit "
     "(ClientsMax=)"},
    {"BadVersion", .status = EXIT_FAILED,
     "the supervisor has version {supported} of the memory layout, this program {version}: "
     "install both from the same release"},
    {"AlreadyAttached", .status = EXIT_FAILED, "this connection already has its shared memory"},
    {"TooLarge", .status = EXIT_FAILED,
     "the request or its answer is larger than {maximum:bytes}: ask for less at a time"},
    {"TooSlow", .status = EXIT_FAILED,
     "the supervisor closed the connection: more than {maximum:bytes} of answers were not read"},
    {"Internal", .status = EXIT_FAILED, "the supervisor lacks what it needs for this: {message}"},

    /* org.varlink.service. Methods refuse bad values with errors of their own. */
    {"InvalidParameter", .status = EXIT_USAGE,
     "the supervisor does not accept '{parameter}' here: has it another version than troupectl?"},
    {"MethodNotFound", .status = EXIT_FAILED,
     "the program at the socket does not know '{method}': is it trouped, of this version?"},
    {"MethodNotImplemented", .status = EXIT_FAILED,
     "the program at the socket does not know '{method}': is it trouped, of this version?"},
    {"InterfaceNotFound", .status = EXIT_FAILED,
     "the program at the socket does not know '{interface}': is it trouped, of this version?"},
    {"PermissionDenied", .status = EXIT_NOT_PERMITTED,
     "not permitted by the program at the socket"},
    {"ExpectedMore", .status = EXIT_FAILED,
     "the supervisor answers this only with \"more\": has it another version than troupectl?"},
};
/* clang-format on */

static void write_member(FILE *file, const json_t *parameters, const char *name, const char *format)
{
    if (strcmp(format, "count") == 0)
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

static void write_sentence(FILE *file, const char *sentence, const json_t *parameters)
{
    while (*sentence != '\0') {
        const size_t plain = strcspn(sentence, "{");
        char name[32], format[8] = "";

        fwrite(sentence, 1, plain, file);
        sentence += plain;
        if (sscanf(sentence, "{%31[a-z_]:%7[a-z]", name, format) < 1)
            break;
        write_member(file, parameters, name, format);
        sentence = strchr(sentence, '}') + 1;
    }
}

/* Turns "QueueTooLong" into "queue too long". */
static void write_words(FILE *file, const char *name)
{
    for (const char *at = name; *at != '\0'; at++) {
        bool upper = *at >= 'A' && *at <= 'Z';

        if (upper && at > name)
            fputc(' ', file);
        fputc(upper ? *at - 'A' + 'a' : *at, file);
    }
}

/* Writes an error of a newer supervisor: "queue too long: group a, maximum 5". */
static void write_unknown(FILE *file, const char *name, const json_t *parameters)
{
    const char *separator = ": ", *key;
    json_t *value;

    fputs("the supervisor refused: ", file);
    write_words(file, name);
    json_object_foreach((json_t *)(uintptr_t)parameters, key, value)
    {
        if (!json_is_string(value) && !json_is_integer(value))
            continue;
        fprintf(file, "%s%s ", separator, key);
        write_member(file, parameters, key, "");
        separator = ", ";
    }
}

static const struct explanation *find_explanation(const char *error, const char *name,
                                                  const json_t *parameters)
{
    if (strncmp(error, "io.troupe.", 10) != 0 && strncmp(error, "org.varlink.service.", 20) != 0)
        return NULL;
    for (size_t i = 0; i < ELEMENTS(explanations); i++) {
        const struct explanation *explanation = &explanations[i];

        if (strcmp(name, explanation->error) == 0 &&
            (!explanation->member || field_has(parameters, explanation->member)))
            return explanation;
    }
    return NULL;
}

size_t explain_problems(const json_t *problems)
{
    for (size_t i = 0; i < json_array_size(problems); i++) {
        const char *problem = json_string_value(json_array_get(problems, i));

        fprintf(stderr, "%s\n", SAFE_LINE(problem ? problem : ""));
    }
    return json_array_size(problems);
}

int explain_error(const char *error, const json_t *parameters)
{
    const char *dot = strrchr(error, '.'), *name = dot ? dot + 1 : error;
    const struct explanation *explanation = find_explanation(error, name, parameters);
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *file;

    (void)explain_problems(json_object_get(parameters, "problems"));
    file = open_memstream(&text, &size);
    if (file && explanation)
        write_sentence(file, explanation->sentence, parameters);
    else if (file)
        write_unknown(file, name, parameters);
    if (!file || fclose(file) != 0)
        return EXIT_FAILED;
    complain_unknown(field_text(parameters, "nearest"),
                     explanation && explanation->hint ? explanation->hint : "", "%s", text);
    return explanation ? explanation->status : EXIT_FAILED;
}

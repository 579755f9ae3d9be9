/* SPDX-License-Identifier: MIT */
#include "shared/protocol/sentence.h"

#include "shared/base/cleanup.h"
#include <errno.h>
#include <string.h>

/* clang-format off */
static const struct sentence SENTENCES[] = {
    {"NoSuchTarget", .error = -ENOENT,
     "there is no group, cell or worker '{target}'",
     "; 'troupectl status' lists them, and 'troupectl reload' reads new files"},
    {"NoSuchGroup", .error = -ENOENT,
     "there is no group '{group}'",
     "; 'troupectl status' lists them, and 'troupectl reload' reads new files"},
    {"NoSuchJob", .error = -ESRCH,
     "there is no job '{id}': it never existed, or its result has expired",
     "; 'troupectl dead-letters' lists dead jobs"},
    {"NoSuchActor", .error = -ENOENT,
     "'{name}' is not an actor: {reason}", .member = "reason"},
    {"NoSuchActor", .error = -ENOENT,
     "there is no actor '{name}'", "; 'troupectl actors' lists them"},
    {"NoSuchExchange", .error = -ENOENT,
     "there is no exchange '{name}'", "; 'troupectl exchanges' lists them"},
    {"NoSuchTimer", .error = -ENOENT,
     "there is no timer {id}", "; 'troupectl timer list' lists them"},
    {"NoSuchSchedule", .error = -ENOENT,
     "schedule '{name}' cannot start: {mistake}", .member = "mistake"},
    {"NoSuchSchedule", .error = -ENOENT,
     "there is no schedule '{name}'", "; 'troupectl schedule' lists them"},
    {"NoSuchSlot", .error = -ENOENT,
     "schedule '{name}' has no such slot to come", "; 'troupectl schedule show NAME' lists some"},
    {"TooManySlots", .error = -EINVAL, "too many slots; allowed: up to {maximum:count}"},
    {"Refused", .error = -EBUSY, "no job was created for schedule '{name}': {cause}"},
    {"NoSuchDeadLetter", .error = -ENOENT,
     "there is no dead letter {id}",
     "; 'troupectl dead-letters' lists them"},
    {"NotPermitted", .error = -EPERM, "not permitted: this needs {needed}"},
    {"BadSize", .error = -EINVAL,
     "a pool of {size} workers is not possible; allowed: {minimum} to {maximum}"},
    {"Elastic", .error = -EINVAL,
     "the size of '{group}' follows its work, from {minimum} to {maximum}",
     "; change Size= and reload"},
    {"BadId", .error = -EINVAL, "'{id}' cannot be a job's id; allowed: {allowed}"},
    {"BadOption", .error = -EINVAL, "'{option}' is missing or wrong; allowed: {allowed}"},
    {"BadPayload", .error = -EINVAL, "the supervisor refused the payload: {problem}"},
    {"BadConfiguration", .error = -EBADMSG,
     "problems in the configuration: {problems:length}; nothing was changed"},
    {"NotConfigured", .error = -EIO,
     "the configuration has a problem: {problem}; running workers continue, and everything else "
     "waits until it is fixed"},
    {"BadGroup", .error = -EBADMSG,
     "group '{group}' takes no jobs until its file is fixed: {problem}"},
    {"NotUpgraded", .error = -ECANCELED, "nothing has changed: {reason}"},
    {"NotAnActor", .error = -EOPNOTSUPP,
     "group '{group}' is a plain service (Type=service): it has no queue and takes no jobs"},
    {"Busy", .error = -EBUSY,
     "the queue of group '{group}' is full: {queued:count} of {maximum:count} jobs "
     "(QueueMax=, QueueMemoryMax=)"},
    {"TooManyCells", .error = -ENOSPC,
     "group '{group}' has no cell for another key: {maximum:count} is its limit (CellsMax=)"},
    {"StoreFull", .error = -ENOSPC,
     "group '{group}' keeps its jobs on disk (Durable=yes), which is full: {problem}"},
    {"StoreFailed", .error = -EIO,
     "group '{group}' keeps its jobs on disk (Durable=yes), which fails: {problem}",
     .member = "group"},
    {"StoreFailed", .error = -EIO,
     "it may be on disk, which could not be read: {problem}"},
    {"Draining", .error = -EHOSTDOWN,
     "group '{group}' is drained and takes no new jobs; 'troupectl resume {group}' ends that"},
    {"NotKept", .error = -EIO, "this cannot be kept on disk: {problem}"},
    {"HistoryOff", .error = -EIO, "there is no history of ended jobs: {problem}"},
    {"TooManySearches", .error = -EUSERS,
     "this user has {maximum:count} unfinished searches, as many as are allowed"},
    {"NotDurable", .error = -EMEDIUMTYPE,
     "job {id} is not durable: a durable job cannot depend on it, nor a batch differ from its members"},
    {"NotABatch", .error = -EINVAL, "job {id} is no batch"},
    {"WaitsForItself", .error = -ELOOP,
     "the job would wait for one that waits for batch {id}, and the batch for the job"},
    {"BatchOver", .error = -ESTALE, "batch {id} takes no more members"},
    {"UniqueTaken", .error = -ENOTUNIQ, "job {holder} has the same unique key"},
    {"JobExists", .error = -EEXIST,
     "a job '{id}' exists: it is live, or its result is still kept"},
    {"NameExists", .error = -EEXIST,
     "the name '{name}' is in use: groups, exchanges and actors share one name space"},
    {"TooMany", .error = -EUSERS, "there are too many {what} already"},
    {"CancelAlreadyRequested", .error = -EALREADY,
     "cancellation of job '{id}' has already been requested"},
    {"AlreadyEnded", .error = -ESTALE, "job '{id}' has already ended: {state}"},
    {"NotWaiting", .error = -EBUSY, "job '{id}' does not wait: {state}"},
    {"NotChanged", .error = -ECANCELED, "job '{id}' stays as it was: {problem}"},
    {"OtherDurability", .error = -EOPNOTSUPP,
     "one of the groups '{group}' and '{to}' is durable (Durable=yes), and the other one is not"},
    {"NotReached", .error = -ECANCELED,
     "{target} will not reach the requested state: {state}",
     "; see 'troupectl status' and 'troupectl deaths'"},
    {"MailboxFull", .error = -EBUSY,
     "the mailbox of '{name}' is full (MailboxMax=, MailboxMemoryMax=): "
     "the message is a dead letter"},
    {"NoMatch", .error = -EHOSTUNREACH,
     "exchange '{exchange}' has no subscription for this: the message is a dead letter"},
    {"TimedOut", .error = -ETIMEDOUT, "there was no reply in time (--timeout)"},
    {"Failed", .error = -ECANCELED, "there will be no reply: {reason}"},
    {"Declared", .error = -EOPNOTSUPP,
     "exchange '{name}' is declared by a file: remove {name}.exchange and run 'troupectl reload'"},
    {"NotRequeued", .error = -ECANCELED,
     "dead letter {id} cannot be sent again and is kept: {problem}"},

    {"Restarting", .error = -ERESTART,
     "the supervisor is restarting; accepted jobs continue: ask for a job by its id"},
    {"Stopping", .error = -ESHUTDOWN, "the supervisor is stopping and accepts nothing new"},
    {"TooManyClients", .error = -EUSERS,
     "the supervisor accepts no further client of this user: {maximum:count} is the limit "
     "(ClientsMax=)"},
    {"BadVersion", .error = -EPROTO,
     "the supervisor has version {supported} of the memory layout, this program {version}: "
     "install both from the same release"},
    {"AlreadyAttached", .error = -EISCONN, "this connection already has its shared memory"},
    {"TooLarge", .error = -EMSGSIZE,
     "the request or its answer is larger than {maximum:bytes}: ask for less at a time"},
    {"Internal", .error = -ENOMEM, "the supervisor is short of resources: {message}"},

    /* org.varlink.service. Methods refuse bad values with errors of their own. */
    {"InvalidParameter", .error = -EINVAL,
     "the supervisor does not accept '{parameter}' here: does its version differ from this "
     "program's?"},
    {"MethodNotFound", .error = -EPROTO,
     "the program at the socket does not know '{method}': is it trouped, of this version?"},
    {"MethodNotImplemented", .error = -EPROTO,
     "the program at the socket does not know '{method}': is it trouped, of this version?"},
    {"InterfaceNotFound", .error = -EPROTO,
     "the program at the socket does not know '{interface}': is it trouped, of this version?"},
    {"PermissionDenied", .error = -EACCES,
     "not permitted by the program at the socket"},
    {"ExpectedMore", .error = -EPROTO,
     "the supervisor answers this only with \"more\": does its version differ from this "
     "program's?"},
};
/* clang-format on */

static const char *last_part(const char *error)
{
    const char *dot = strrchr(error, '.');

    return dot ? dot + 1 : error;
}

const struct sentence *sentence_find(const char *error, sentence_has_fn has, const void *parameters)
{
    const char *name = last_part(error);

    if (strncmp(error, "io.troupe.", 10) != 0 && strncmp(error, "org.varlink.service.", 20) != 0)
        return NULL;
    for (size_t i = 0; i < ELEMENTS(SENTENCES); i++) {
        const struct sentence *sentence = &SENTENCES[i];

        if (strcmp(name, sentence->name) == 0 &&
            (!sentence->member || has(parameters, sentence->member)))
            return sentence;
    }
    return NULL;
}

static bool has_all(const void *parameters, const char *member)
{
    return true;
}

int sentence_error(const char *error)
{
    const struct sentence *sentence = sentence_find(error, has_all, NULL);

    return sentence ? sentence->error : -EPROTO;
}

void sentence_write(FILE *file, const struct sentence *sentence, sentence_put_fn put,
                    const void *parameters)
{
    const char *text = sentence->text;

    while (*text != '\0') {
        const size_t plain = strcspn(text, "{");
        char name[32], format[8] = "";

        fwrite(text, 1, plain, file);
        text += plain;
        if (sscanf(text, "{%31[a-z_]:%7[a-z]", name, format) < 1)
            break;
        put(file, parameters, name, format);
        text = strchr(text, '}') + 1;
    }
}

void sentence_write_name(FILE *file, const char *error)
{
    const char *name = last_part(error);

    for (const char *at = name; *at != '\0'; at++) {
        const bool upper = *at >= 'A' && *at <= 'Z';

        if (upper && at > name)
            fputc(' ', file);
        fputc(upper ? *at - 'A' + 'a' : *at, file);
    }
}

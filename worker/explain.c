/* SPDX-License-Identifier: MIT */

/* Explains errors of client calls in sentences for people. */

#include "shared/base/cleanup.h"
#include "worker/client/connect.h"
#include "worker/public.h"
#include "worker/troupe.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define CREATORS                                                                                   \
    "needs root, the supervisor's user, AdminGroup=, or SubmitUser= or SubmitGroup= of the "       \
    "group; "                                                                                      \
    "workers need MaySubmit= of their own group"

static const struct reason {
    int error;
    const char *text;
    const char *rest; /* follows after the socket's path; NULL = no path and no rest */
} connect_reasons[] = {
    {-ENOENT, "no supervisor at ", ": there is no such socket; "},
    {-ECONNREFUSED, "no supervisor at ", ": nothing listens there; "},
    {-EACCES, "not permitted to open ", ": see the mode of the socket and of its directory"},
    {-EPERM, "not permitted: creating jobs " CREATORS, NULL},
    {-EUSERS, "the supervisor accepts no further client (ClientsMax=)", NULL},
    {-EAGAIN, "the supervisor is short of memory or descriptors (LimitNOFILE=), try again", NULL},
    {-ERESTART, "the supervisor is restarting, try again", NULL},
    {-ECONNRESET, "the supervisor closed the connection, or is gone", NULL},
    {-ESHUTDOWN, "the supervisor is stopping and accepts nothing new", NULL},
    {-EIO, "the configuration has a problem: see 'troupectl status'", NULL},
    {-EPROTO, "the program at ", " is not trouped, or has another version"},
    {0, "cannot connect to ", ""},
};

/* Returns the command that helps when no supervisor listens at `path`. */
static const char *what_helps(const char *path)
{
    const char *chosen = secure_getenv("TROUPE_SOCKET");

    if (strcmp(path, CONNECTION_USUAL_PATH) == 0)
        return "'systemctl start trouped' starts it";
    return chosen && strcmp(path, chosen) == 0
               ? "$TROUPE_SOCKET names it, and 'unset TROUPE_SOCKET' chooses the usual one"
               : "is trouped running there?";
}

_public_ const char *troupe_explain_connect(int error, const char *socket_path, char *text,
                                            size_t size)
{
    const struct reason *reason = connect_reasons;
    const bool away = error == -ENOENT || error == -ECONNREFUSED;

    while (reason->error != error && reason->error != 0)
        reason++;
    (void)snprintf(
        text, size, "%s%s%s%s%s%s", reason->text, reason->rest ? connection_path(socket_path) : "",
        reason->rest ? reason->rest : "", away ? what_helps(connection_path(socket_path)) : "",
        reason->error == 0 ? ": " : "", reason->error == 0 ? strerror(-error) : "");
    return text;
}

static const struct {
    int error;
    const char *text;
} refusals[] = {
    {-EBUSY, "its queue is full (QueueMax=, QueueMemoryMax=)"},
    {-EEXIST, "a job with this id exists: it is live, or its result is still kept"},
    {-ENOTUNIQ, "another live job has the same unique key"},
    {-ENOSPC, "its disk is full (Durable=yes), or it has no cell for another key (CellsMax=): see "
              "troupectl status"},
    {-EIO, "its jobs cannot be written to disk (Durable=yes): see troupectl status"},
    {-EHOSTDOWN, "it is drained and takes no new jobs until it is resumed"},
    {-EBADMSG, "its file has a mistake: see troupectl status"},
    {-ESHUTDOWN, "the supervisor is stopping"},
    {-ENOENT, "the group no longer exists"},
    {-ECONNRESET, "the supervisor that had it is gone"},
    {-EINVAL, "the id, the key or an option is missing or malformed"},
    {-EMSGSIZE, "the payload is too large"},
    {-EFBIG, "the payload is above the limit on the size of files (ulimit -f, LimitFSIZE=)"},
    {-EPERM, "not permitted: creating jobs " CREATORS
             "; SubmitUser= and SubmitGroup= permit no priority below 32"},
    {-EOPNOTSUPP, "it is a plain service (Type=service), which has no queue and takes no jobs"},
};

_public_ const char *troupe_explain_refused(int error, const char *group, const char *reason,
                                            char *text, size_t size)
{
    const char *why = reason && *reason ? reason : NULL;

    if (error == -EPIPE)
        return troupe_explain_connect(-ECONNRESET, NULL, text, size);
    for (size_t i = 0; !why && i < ELEMENTS(refusals); i++)
        if (refusals[i].error == error)
            why = refusals[i].text;
    if (!why)
        why = strerror(-error);
    if (error == -ECONNRESET)
        (void)snprintf(text, size, "what became of the job is not known: %s", why);
    else
        (void)snprintf(text, size, "group '%s' refused the job: %s", group, why);
    return text;
}

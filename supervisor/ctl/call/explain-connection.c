/* SPDX-License-Identifier: MIT */

/* Explains why a connection could not be made, or broke. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/exit-status.h"
#include "supervisor/ctl/text/complain.h"
#include "worker/troupe.h"
#include <string.h>

#define SENTENCE_SIZE 512

int explain_connect(const char *socket, int error)
{
    char text[SENTENCE_SIZE];

    complain("%s", troupe_explain_connect(error, socket, text, sizeof(text)));
    switch (error) {
    case -EACCES:
    case -EPERM:
        return EXIT_NOT_PERMITTED;
    case -EUSERS:
    case -EAGAIN:
    case -ERESTART:
    case -ESHUTDOWN:
        return EXIT_BUSY;
    default:
        return EXIT_UNREACHABLE;
    }
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

/* SPDX-License-Identifier: MIT */

/* Explains why a connection could not be made, or broke. */

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/exit-status.h"
#include "supervisor/ctl/text/complain.h"
#include <string.h>

#define IS_IT_RUNNING "; is trouped running? See 'systemctl status trouped'"

static const struct reason {
    int error;
    int status;
    const char *text;
    const char *rest; /* follows after the path of the socket; NULL = neither */
} connect_reasons[] = {
    {-ENOENT, EXIT_UNREACHABLE, "no supervisor at ", ": there is no such socket" IS_IT_RUNNING},
    {-ECONNREFUSED, EXIT_UNREACHABLE, "no supervisor at ", ": nothing listens there" IS_IT_RUNNING},
    {-EACCES, EXIT_NOT_PERMITTED, "not permitted to open ",
     ": see the mode of the socket and of its directory"},
    {-EPERM, EXIT_NOT_PERMITTED,
     "not permitted: creating jobs needs root, the supervisor's user or AdminGroup=", NULL},
    {-EUSERS, EXIT_BUSY, "the supervisor accepts no further client (ClientsMax=)", NULL},
    {-EAGAIN, EXIT_BUSY,
     "the supervisor is short of memory or descriptors (LimitNOFILE=), try again", NULL},
    {-ERESTART, EXIT_BUSY, "the supervisor is restarting, try again", NULL},
    {-ECONNRESET, EXIT_UNREACHABLE, "the supervisor closed the connection, or is gone", NULL},
    {-ESHUTDOWN, EXIT_BUSY, "the supervisor is stopping and accepts nothing new", NULL},
    {-EPROTO, EXIT_UNREACHABLE, "the program at ", " is not trouped, or has another version"},
    {0, EXIT_UNREACHABLE, "cannot connect to ", ""},
};

static const struct reason broken_reasons[] = {
    {-ECONNRESET, EXIT_UNREACHABLE, "the supervisor closed the connection, or is gone", NULL},
    {-EPIPE, EXIT_UNREACHABLE, "the supervisor closed the connection, or is gone", NULL},
    {-ETIMEDOUT, EXIT_TIMEOUT,
     "no answer in time: the supervisor is busy, or hangs (--timeout waits longer)", NULL},
    {-EPROTO, EXIT_UNREACHABLE,
     "the answer does not follow the Varlink protocol: is it trouped at this socket?", NULL},
    {-EMSGSIZE, EXIT_USAGE, "the request is larger than the supervisor accepts (1 MiB)", NULL},
    {-ENOMEM, EXIT_FAILED, "out of memory", NULL},
    {0, EXIT_UNREACHABLE, "the connection to the supervisor failed", NULL},
};

/* The last reason of a list is for all other errors. */
static int explain(const struct reason *reason, const char *socket, int error)
{
    while (reason->error != error && reason->error != 0)
        reason++;
    complain("%s%s%s%s%s", reason->text, reason->rest ? socket : "",
             reason->rest ? reason->rest : "", reason->error == 0 ? ": " : "",
             reason->error == 0 ? strerror(-error) : "");
    return reason->status;
}

int explain_connect(const char *socket, int error)
{
    return explain(connect_reasons, socket, error);
}

int explain_broken(int error)
{
    return explain(broken_reasons, "", error);
}

/* SPDX-License-Identifier: MIT */
#pragma once

/* What troupectl exits with, and what every verb returns. Documented in troupectl(1): scripts rely
 * on it. */
enum exit_status {
    EXIT_OK = 0,
    EXIT_FAILED = 1,        /* the operation, the job, or one of the jobs did not succeed */
    EXIT_USAGE = 2,         /* the command line makes no sense */
    EXIT_UNREACHABLE = 3,   /* no supervisor there, or the connection was lost */
    EXIT_NOT_PERMITTED = 4, /* the supervisor, or the socket's mode, says no */
    EXIT_NOT_FOUND = 5,     /* no such group, worker or job */
    EXIT_BUSY = 6,          /* queue full, id in use, too many clients, supervisor stopping */
    EXIT_INVALID = 7,       /* the configuration has problems */
    EXIT_TIMEOUT = 8,       /* --timeout ran out; what was asked for may go on */
    EXIT_INTERRUPTED = 130, /* as a shell reports SIGINT */
};

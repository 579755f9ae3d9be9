/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The exit statuses of troupectl, which every verb returns. Documented in troupectl(1); scripts
 * rely on them.
 */
enum exit_status {
    EXIT_OK = 0,
    EXIT_FAILED = 1,        /* the operation or a job did not succeed */
    EXIT_USAGE = 2,         /* invalid command line */
    EXIT_UNREACHABLE = 3,   /* the supervisor is not running, or the connection was lost */
    EXIT_NOT_PERMITTED = 4, /* refused by the supervisor or by the mode of the socket */
    EXIT_NOT_FOUND = 5,     /* no such group, worker or job */
    EXIT_BUSY = 6,          /* queue full, id in use, too many clients, supervisor stopping */
    EXIT_INVALID = 7,       /* the configuration has problems */
    EXIT_TIMEOUT = 8,       /* --timeout expired; the operation may go on */
    EXIT_UNKNOWN = 9,       /* the supervisor restarted: what became of a job is not known */
    EXIT_INTERRUPTED = 130, /* as a shell reports SIGINT */
};

/* SPDX-License-Identifier: MIT */
#pragma once

/* What went wrong, as a sentence on standard error, and as an exit status: both come from here. */

#include <jansson.h>

struct troupe_result;

/* An error reply: its full name and its parameters. */
int explain_error(const char *error, const json_t *parameters);

/* connect(2) to the socket, or troupe_client_connect(), failed with -errno. */
int explain_connect(const char *socket, int error);

/* An established connection failed with -errno. */
int explain_broken(int error);

/* libtroupe refused a job for `group` with -errno; `reason` may be empty. */
int explain_refused(const char *group, int error, const char *reason);

/* The exit status of a job that was refused or did not succeed; says nothing. */
int explain_status(const struct troupe_result *result);

/* How a job ended that did not succeed, with what its worker answered; `where` comes first, ""
 * allowed. */
int explain_end(const char *where, const struct troupe_result *result);

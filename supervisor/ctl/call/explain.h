/* SPDX-License-Identifier: MIT */
#pragma once

/* Explains failures: prints a message to standard error and returns the exit status. */

#include <jansson.h>

struct troupe_result;

/* Explains an error reply by its full name and parameters. */
int explain_error(const char *error, const json_t *parameters);

/* Prints each problem of the configuration on a line of its own, and returns their number. */
size_t explain_problems(const json_t *problems);

/* Explains why connect(2) or troupe_client_connect() failed with -errno. */
int explain_connect(const char *socket, int error);

/* Explains why an established connection failed with -errno. */
int explain_broken(int error);

/* Explains why libtroupe refused a job for `group` with -errno. The message begins with `where`;
 * both that and `reason` may be "". */
int explain_refused(const char *where, const char *group, int error, const char *reason);

/*
 * Says that this job may have ended, or never begun: for this reason, or (NULL, "") as the
 * supervisor is gone, and a new one does not know it. The message begins with `where`, which may be
 * "".
 */
int explain_unknown(const char *where, const char *id, const char *reason);

/*
 * Returns the end of a job as JSON: state, id, attempts, code, reason, and the result unless it is
 * in `file`, which may be NULL. NULL when out of memory.
 */
json_t *explain_json(const char *group, const struct troupe_result *result, const char *file);

/* The exit status for a job that was refused or did not succeed. Prints nothing. */
int explain_status(const struct troupe_result *result);

/*
 * Explains why a job did not succeed, with its worker's answer. The message begins with `where`,
 * which may be "".
 */
int explain_end(const char *where, const struct troupe_result *result);

/* Like explain_end(), but also explains why a job was refused, or that its end is unknown. */
int explain_result(const char *where, const char *group, const struct troupe_result *result);

/* SPDX-License-Identifier: MIT */
#ifndef TROUPE_QUERY_H
#define TROUPE_QUERY_H

/*
 * libtroupe: queries about jobs, groups, dead letters and events.
 *
 *     struct troupe_query *query;
 *     troupe_query_new(&query, NULL);
 *     troupe_query_call(query, "io.troupe.Jobs.List", "jobs", "{\"group\":\"digest\"}", 0);
 *     while (troupe_query_next(query, UINT64_MAX) == 1)
 *         printf("%s %s\n", troupe_query_text(query, "id"), troupe_query_text(query, "state"));
 *     troupe_query_free(query);
 *
 * A query has its own connection. It calls any method of troupe-varlink(7), which also says who may
 * call it, and lists the fields of the records. The rules of troupe.h apply.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct troupe_query;

/* Connects, with the errors of troupe_client_connect(). The caller frees the query with
 * troupe_query_free(), which does nothing with NULL. */
int troupe_query_new(struct troupe_query **ret, const char *socket_path);
void troupe_query_free(struct troupe_query *query);

/*
 * Calls a method. `parameters`: a JSON object; NULL = none. troupe_query_next() then goes through
 * that `member` of the answer, NULL = the whole answer: each element of an array, or one record.
 * Further pages are fetched automatically. `flags`: 0 or TROUPE_QUERY_MORE. Returns 0, -EINVAL if
 * `parameters` is not an object, -EBUSY if the previous call has not ended, or -errno.
 */
int troupe_query_call(struct troupe_query *query, const char *method, const char *member,
                      const char *parameters, unsigned flags);

/* Sets "more" in Varlink: further answers follow as long as the supervisor sends some. */
#define TROUPE_QUERY_MORE (1u << 0)

/*
 * Waits up to `timeout_usec` for the next record. Returns 1, or 0 after the last one, when another
 * query may begin. -EAGAIN: none within that time; -EINTR: a signal handler ran; -ESRCH: no such
 * job; -ENOENT: no such group, cell or worker; -EPERM; -EPROTO; or another -errno for other errors
 * of the supervisor.
 */
int troupe_query_next(struct troupe_query *query, uint64_t timeout_usec);

/* Returns a sentence that says why the supervisor refused the query, or "" if it did not. Valid
 * until the next troupe_query_next(). */
const char *troupe_query_reason(const struct troupe_query *query);

/* Returns a level-triggered descriptor for event loops, which the query keeps. When it is readable,
 * and after a query has begun, call troupe_query_next() with a time-out of 0 until -EAGAIN. */
int troupe_query_fd(const struct troupe_query *query);

/*
 * Return a field of the record, valid until the next troupe_query_next(). A path such as
 * "result.data" names a member of a field. If there is no such field of that type: NULL,
 * `otherwise`, false.
 */
const char *troupe_query_text(struct troupe_query *query, const char *field);
int64_t troupe_query_number(const struct troupe_query *query, const char *field, int64_t otherwise);
bool troupe_query_flag(const struct troupe_query *query, const char *field);

/* Returns the record as JSON of `*ret_size` bytes without a NUL. NULL = no record. */
const char *troupe_query_json(const struct troupe_query *query, size_t *ret_size);

#ifdef __cplusplus
}
#endif

#endif

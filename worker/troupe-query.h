/* SPDX-License-Identifier: MIT */
#ifndef TROUPE_QUERY_H
#define TROUPE_QUERY_H

/*
 * libtroupe: what the supervisor knows of jobs, and what happens to them.
 *
 *     struct troupe_query *query;
 *     troupe_query_new(&query, NULL);
 *     troupe_query_jobs(query, "digest", 0);
 *     while (troupe_query_next(query, UINT64_MAX) == 1)
 *         printf("%s %s\n", troupe_query_text(query, "id"), troupe_query_text(query, "state"));
 *     troupe_query_free(query);
 *
 * A query has a connection of its own and needs no permission, but contents (payloads, results …)
 * are shown only to those who may read them. It answers with records; their fields are those of the
 * types Job, DeadLetter and Event in troupe-varlink(7), by the same names.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct troupe_query;

/* Connects, as troupe_client_connect(), with the same errors. To be ended with
 * troupe_query_free(). */
int troupe_query_new(struct troupe_query **ret, const char *socket_path);
void troupe_query_free(struct troupe_query *query);

/*
 * Each begins a query, whose records troupe_query_next() gives. -EBUSY while another one has not
 * come to its end (one for events never does: take another object); -EINVAL; -EPIPE the connection
 * is over; -ENOMEM.
 */

/* One job: a single record, of type Job. */
int troupe_query_job(struct troupe_query *query, const char *id);

/* Live jobs of a group ("digest"), of a cell ("mail/acme"), or of all (NULL): records of type Job.
 */
int troupe_query_jobs(struct troupe_query *query, const char *group, unsigned flags);

/* Also those that have ended and whose results are kept. */
#define TROUPE_QUERY_ENDED (1u << 0)

/* Dead letters, newest first, for a recipient (a group or anything below it) or all (NULL): records
 * of type DeadLetter. */
int troupe_query_dead_letters(struct troupe_query *query, const char *recipient);

/* What happens from now on to a group, a cell or a worker, or to all (NULL): records of type Event.
 */
int troupe_query_events(struct troupe_query *query, const char *target, unsigned flags);

/* Also every job that is accepted, begun, tried again or ended: "job.accepted" and so on. Who does
 * not take them in time loses the connection. */
#define TROUPE_QUERY_JOB_EVENTS (1u << 1)

/*
 * The next record. Waits at most `timeout_usec` for it (UINT64_MAX = for ever). 1; 0 there is no
 * more, and another query may begin; -EAGAIN nothing within that time; -EINTR a signal handler ran;
 * -ESRCH no such job; -ENOENT no such group, cell or worker; -EPERM; -EPROTO; -EPIPE the connection
 * is over.
 */
int troupe_query_next(struct troupe_query *query, uint64_t timeout_usec);

/*
 * Fields of the record, valid until the next call of troupe_query_next(); a path such as
 * "result.data" leads into a field. Text: NULL when there is none, or it is no text. Numbers and
 * flags: `otherwise`, or false, when there is none.
 */
const char *troupe_query_text(struct troupe_query *query, const char *field);
int64_t troupe_query_number(const struct troupe_query *query, const char *field, int64_t otherwise);
bool troupe_query_flag(const struct troupe_query *query, const char *field);

/* All of the record, as JSON; its size, without a NUL behind it, in `*ret_size`. NULL = no record.
 */
const char *troupe_query_json(const struct troupe_query *query, size_t *ret_size);

#ifdef __cplusplus
}
#endif

#endif

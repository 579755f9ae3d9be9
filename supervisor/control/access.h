/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Read permissions. Everyone who can connect reads numbers and names. Contents (payloads, results,
 * published states, output of workers, texts that quote them) are for root, the supervisor's own
 * user, AdminGroup= and ReadGroup=; those of a group also for its User=, those of a job for its
 * submitter, and while a job that has waited for it is in hand, for that job's worker.
 */

#include <stdbool.h>

struct dead_letter;
struct death;
struct event;
struct group;
struct history_reader;
struct job;
struct request;

/* Whether the client may read the contents of a group (NULL = it is gone), job … */
bool access_group(const struct request *request, const struct group *group);
bool access_job(const struct request *request, const struct job *job);
/* Whether the client has submitted the job, and may read its contents whatever its group. */
bool access_is_submitter(const struct request *request, const struct job *job);
bool access_death(const struct request *request, const struct death *death);
bool access_event(const struct request *request, const struct event *event);
bool access_letter(const struct request *request, const struct dead_letter *letter);

/* Fills in which ended jobs the client may read in the history. Returns 0 or -ENOMEM. */
int access_history(const struct request *request, struct history_reader *ret);

/* Returns whether the client may create jobs in the group (NULL = none): a client that may change
 * things, or one that SubmitUser= or SubmitGroup= of the group names. */
bool access_submit(const struct request *request, const struct group *group);
/* Returns whether the client may cancel the job: a client that may change things, or the job's
 * submitter if that may still create jobs in the group. */
bool access_cancel(const struct request *request, const struct job *job);
/* Returns whether the client may create jobs in any group. Looks at all groups. */
bool access_submits_somewhere(const struct request *request);

/* Replies with NotPermitted, naming the users who may create jobs in the group; NULL names only
 * those who may change things. */
void access_refuse_submit(struct request *request, const struct group *group);

/*
 * Returns whether the client may read the contents of the group (NULL = of all groups); if not,
 * replies with NotPermitted and the reason `why`.
 */
bool access_demand(struct request *request, const struct group *group, const char *why);

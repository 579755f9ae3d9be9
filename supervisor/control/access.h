/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Read permissions. Everyone who can connect reads numbers and names. Contents (payloads, results,
 * published states, output of workers, texts that quote them) are for root, the supervisor's own
 * user, AdminGroup= and ReadGroup=; those of a group also for its User=, those of a job for its
 * submitter.
 */

#include "supervisor/varlink/peer.h"
#include <stdbool.h>

struct control_context;
struct dead_letter;
struct death;
struct event;
struct group;
struct job;
struct request;

/* The client that asks. */
struct access {
    const struct control_context *context;
    const struct peer *peer;
};

struct access access_of(const struct request *request);

/* The contents of one group (NULL = it is gone), job, and so on. */
bool access_group(const struct access *access, const struct group *group);
bool access_job(const struct access *access, const struct job *job);
bool access_death(const struct access *access, const struct death *death);
bool access_event(const struct access *access, const struct event *event);
bool access_letter(const struct access *access, const struct dead_letter *letter);

/*
 * Returns whether the client may read the contents of the group (NULL = of all groups); if not,
 * replies with NotPermitted and the reason `why`.
 */
bool access_demand(struct request *request, const struct group *group, const char *why);

/* The same for the group of an address; NULL = all groups. */
bool access_demand_address(struct request *request, const char *address, const char *why);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who may read what. Numbers and names are for everyone who can connect. Contents (payloads,
 * results, published states, what workers write, error texts and reasons that quote them) are for
 * root, the supervisor's own user, AdminGroup= and ReadGroup=; those of one group also for its
 * User=, and those of one job for whoever submitted it.
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

/* Whoever asks. */
struct access {
    const struct control_context *context;
    const struct peer *peer;
};

struct access access_of(const struct request *request);

/* Everything. */
bool access_all(const struct access *access);

/* The contents of whatever belongs to a group (NULL = one that is gone), a job, and so on. */
bool access_group(const struct access *access, const struct group *group);
bool access_job(const struct access *access, const struct job *job);
bool access_death(const struct access *access, const struct death *death);
bool access_event(const struct access *access, const struct event *event);
bool access_letter(const struct access *access, const struct dead_letter *letter);

/*
 * Answers the request with NotPermitted unless the contents of that group (NULL = of all groups)
 * may be read: then true. `why` they must: what the answer says.
 */
bool access_demand(struct request *request, const struct group *group, const char *why);

/* As above, for the group that an address lies in. NULL = all groups. */
bool access_demand_address(struct request *request, const char *address, const char *why);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Attaches to the supervisor through libtroupe, for payloads and results of any size. */

#include "worker/troupe.h"

struct invocation;
struct options;

struct attachment_client {
    struct troupe_client *client;
    uint64_t group;
};

/* Connects and finds the group. Prints errors and returns an exit status. */
int attach_group(struct invocation *invocation, const char *group, struct attachment_client *ret);

/* The job options of the command line as libtroupe takes them. */
struct troupe_job_options attach_job_options(const struct options *options);

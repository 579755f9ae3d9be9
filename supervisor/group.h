/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A group: one kind of worker, as configured by one file. Without keys it has one cell.
 */

#include "cell.h"
#include "config.h"
#include <stdbool.h>
#include <stdint.h>

struct context;

struct group {
    struct context *context;
    struct config_group *config; /* owned */
    const char *name;            /* config->name */
    uint64_t reference;          /* index and generation in the registry */
    struct cell *cell;
    gid_t *groups; /* supplementary ones of User=, resolved once: the name service may block */
    size_t n_groups;
    config_strv user_environment; /* HOME and the like, of User= */
    bool wanted;                  /* new slots are to run */
    bool pending;                 /* to be started once the groups of its After= have come up */
    bool drained;                 /* removed, and without jobs: only its slots are still to stop */
    bool removed;                 /* drains: accepts nothing, and goes away once all is down */
};

/* Takes `config` over on success. 0 or -ENOMEM. */
int group_new(struct group **ret, struct context *context, struct config_group *config);
struct group *group_free(struct group *group);

void group_start(struct group *group);
/* Queued jobs stay queued. */
void group_stop(struct group *group, bool hurry);
void group_restart(struct group *group);
void group_reset(struct group *group);
void group_pause(struct group *group);
void group_resume(struct group *group);

#define GROUP_SIZE_MAX 4096
enum {
    _GROUP_E_SUCCESS,
    GROUP_E_BAD_SIZE, /* not within 1 … GROUP_SIZE_MAX */
};
int group_resize(struct group *group, int64_t size);

/*
 * A new configuration for the same name: policies at once, size by resizing, another program by
 * restarting the slots after their jobs. Takes `config` over. 0 or -errno (the old one stays).
 */
int group_reconfigure(struct group *group, struct config_group *config);

/* For status: "running", "paused", "stopped", "degraded" (some slots in backoff or failed),
 * "failed". */
const char *group_state(const struct group *group);

/* Drains it: no new job, what it has ends, then its slots stop; the group is down at last. */
void group_remove(struct group *group);

/* Every slot has come up once or has been seen to fail, or is not wanted; and the group is not
 * pending. */
bool group_decided(const struct group *group);

/* Told by its cell when it is removed and the last job has ended. */
void group_drained(struct group *group);

/* No slot has a process: all are stopped or failed. */
bool group_down(const struct group *group);

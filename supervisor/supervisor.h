/* SPDX-License-Identifier: MIT */
#pragma once

/* The supervisor puts the parts together, and decides when all is ready, what a reload changes, and
 * how all stops. */

#include "shared/base/log.h"
#include "supervisor/loop/loop.h"
#include <stdbool.h>
#include <sys/types.h>

struct supervisor;

struct supervisor_options {
    const char *config_directory;
    const char *socket_path;
    enum loop_kind loop;
    bool force_eventfd;
    bool log_level_given; /* the command line overrides troupe.conf */
    enum log_level log_level;
    pid_t keeper;        /* the main process; 0 = none */
    int channel;         /* to the keeper */
    int notify_fd;       /* to the service manager; -ENOENT = there is none; -errno */
    bool unconfined;     /* without confinement_apply() */
    bool check;          /* do not run: supervisor_check() */
    uint64_t layout;     /* with `check`, for an upgrade: upgrade_layout() of the one that runs */
    const char *program; /* what an upgrade executes */
};

/* Starts everything up to the first turn of the loop. Returns 0 or -errno, logged: then the process
 * has to end. `options` and its strings must outlive the supervisor. */
int supervisor_new(struct supervisor **ret, const struct supervisor_options *options);

enum {
    _SUPERVISOR_E_SUCCESS,
    SUPERVISOR_E_UPGRADE, /* everything is handed over: exit with KEEPER_EXIT_UPGRADE, and free
                             nothing, which would drop it */
};

/* Runs until SIGTERM or SIGINT has stopped everything. Returns 0, SUPERVISOR_E_UPGRADE or -errno.
 */
int supervisor_run(struct supervisor *supervisor);

/* Checks whether a supervisor could start with these options. Returns 0 or -errno, logged. */
int supervisor_check(const struct supervisor_options *options);

struct supervisor *supervisor_free(struct supervisor *supervisor); /* NULL allowed; returns NULL */

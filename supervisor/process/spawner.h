/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The supervisor's end of the channel to the keeper (keeper/message.h): requests processes, and
 * reports their start and end. It never blocks: messages wait here while the channel is full, and
 * starts are held while many requests are unanswered.
 */

#include "shared/base/handle-table.h"
#include "shared/base/list.h"
#include "supervisor/keeper/spawn.h"
#include "supervisor/loop/loop.h"
#include "supervisor/loop/timer.h"
#include "supervisor/loop/work-queue.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct spawner_client;

struct spawner_handler {
    /* The process exists, and the client owns its pidfd; or error < 0: no process, and no
     * further call. */
    void (*spawned)(struct spawner_client *client, pid_t pid, int pidfd, int error);
    /* The process has ended and is reaped. The last call. */
    void (*exited)(struct spawner_client *client, const struct spawn_exit *how);
};

/* Embedded in the owner of a process. */
struct spawner_client {
    const struct spawner_handler *handler;
    uint64_t id; /* 0 = no further calls */
};

struct spawner {
    struct loop *loop;
    int fd;
    struct loop_watch watch;
    struct list waiting;         /* messages that could not be sent yet */
    struct timer retry;          /* after ENOBUFS */
    struct handle_table clients; /* by id */
    unsigned n_unanswered;
    struct work_queue starts; /* tasks that request processes; held while many are unanswered */
};

/* Takes over the descriptor, even on error; -1 = no keeper: every request fails with
 * -ECONNREFUSED. Returns 0 or -errno. */
int spawner_init(struct spawner *spawner, struct loop *loop, int fd);
void spawner_deinit(struct spawner *spawner);

/*
 * Requests a process. Returns 0: the loop calls the client later. Returns -E2BIG (arguments,
 * environment and groups exceed MESSAGE_SIZE_MAX), -ENOMEM or -errno: it does not. Descriptors stay
 * the caller's.
 */
int spawner_request(struct spawner *spawner, struct spawner_client *client,
                    const struct spawn_options *options);

/* Sends SIGKILL to the process, its group, and its orphans. Best effort. */
void spawner_kill(struct spawner *spawner, const struct spawner_client *client, pid_t pid);

/* Ends the calls to the client. */
void spawner_forget(struct spawner *spawner, struct spawner_client *client);

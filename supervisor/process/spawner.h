/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The supervisor's end of the channel to the keeper (keeper/message.h): requests processes, and
 * hears of their beginning and end. It never blocks: what the channel has no room for waits here,
 * and while many requests are unanswered the queue of starts is held.
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
    /* There is a process, whose pidfd is the client's; or, with error < 0, there is none, and this
     * is the last that the client hears. */
    void (*spawned)(struct spawner_client *client, pid_t pid, int pidfd, int error);
    /* After `spawned`: it has ended and is reaped. The last that the client hears. */
    void (*exited)(struct spawner_client *client, const struct spawn_exit *how);
};

/* Embedded in whoever wants a process. */
struct spawner_client {
    const struct spawner_handler *handler;
    uint64_t id; /* 0 = nothing is to be heard */
};

struct spawner {
    struct loop *loop;
    int fd;
    struct loop_watch watch;
    struct list waiting;         /* messages that could not be sent yet */
    struct timer retry;          /* for those that no event of the channel lets go on */
    struct handle_table clients; /* by id */
    unsigned n_unanswered;
    struct work_queue starts; /* tasks that request processes; held while many are unanswered */
};

/* Takes the descriptor over, also on error; -1 = no keeper: every request fails with -ECONNREFUSED.
 * 0 or -errno. */
int spawner_init(struct spawner *spawner, struct loop *loop, int fd);
void spawner_deinit(struct spawner *spawner);

/*
 * Requests a process. 0: the client hears of it from the loop, later. -E2BIG (arguments,
 * environment and groups are more than MESSAGE_SIZE_MAX), -ENOMEM, -errno: it does not. Descriptors
 * stay the caller's.
 */
int spawner_request(struct spawner *spawner, struct spawner_client *client,
                    const struct spawn_options *options);

/* SIGKILL to the process, its group, and what it left to the keeper. Best effort. */
void spawner_kill(struct spawner *spawner, const struct spawner_client *client, pid_t pid);

/* The client does not want to hear of its process any more. */
void spawner_forget(struct spawner *spawner, struct spawner_client *client);

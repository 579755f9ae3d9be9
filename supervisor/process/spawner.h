/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The supervisor's end of the channel to the keeper (keeper/message.h): requests processes, and
 * reports their start and end. It never blocks: messages wait here while the channel is full, and
 * starts are held while many requests are unanswered.
 */

#include "shared/base/handle-table.h"
#include "shared/base/list.h"
#include "supervisor/keeper/message.h"
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
    /* Called when the keeper has closed the channel; does not return. Set by the owner. */
    void (*keeper_lost)(struct spawner *spawner);
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
 * Requests a process. Returns 0, and the loop calls the client later; or -E2BIG (arguments,
 * environment and groups exceed MESSAGE_SIZE_MAX), -ENOMEM or -errno, and the client is not called.
 * Descriptors stay the caller's.
 */
int spawner_request(struct spawner *spawner, struct spawner_client *client,
                    const struct spawn_options *options);

/* Like spawner_request(), for a child of the keeper that waits until the keeper knows it. The
 * client has an id of spawner_register(), and keeps it on error. */
int spawner_adopt(struct spawner *spawner, const struct spawner_client *client, pid_t pid,
                  bool contained);

/* Gives a client an id without a process, under which the keeper can hold things (holding.h).
 * spawner_forget() takes it back. Returns 0 or -ENOMEM. */
int spawner_register(struct spawner *spawner, struct spawner_client *client);

/* Sends SIGKILL to the process, its group, and its orphans. Best effort. */
void spawner_kill(struct spawner *spawner, const struct spawner_client *client, pid_t pid);

/* With `spared`, the keeper does not kill descendants of this client's process when it ends; a
 * later call without `spared` makes it kill them. Best effort. */
void spawner_spare(struct spawner *spawner, uint64_t id, pid_t pid, bool spared);

/* Ends the calls to the client. */
void spawner_forget(struct spawner *spawner, struct spawner_client *client);

/* From now on `to` is the client with this id. */
void spawner_pass_on(struct spawner *spawner, struct spawner_client *from,
                     struct spawner_client *to);

/*
 * Sends a message without contents:
 *
 *     MESSAGE_READY    the supervisor is ready: the keeper restarts it from now on
 *     MESSAGE_FORGIVE  ends safe mode: earlier crashes do not count any more
 */
void spawner_tell(struct spawner *spawner, enum message_kind kind);

/* Sends a message, or keeps a copy until the channel has room. Returns 0 or -errno. */
int spawner_send(struct spawner *spawner, const struct message *message);

/* Waits until all messages are sent, for at most `timeout`. Returns whether they are. */
bool spawner_drain(struct spawner *spawner, usec_t timeout);

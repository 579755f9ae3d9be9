/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the keeper holds for the next supervisor: for a worker, a service or a ring client, its
 * descriptors and some bytes that say what they are. After a crash or an upgrade the next
 * supervisor finds them by kind and name (held.h). A process that is not held ends with the
 * supervisor.
 *
 * The bytes come from the supervisor and go back to the next one, which may be another version: the
 * owner of a kind keeps a version of its data, and reads the version before.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct spawner;
struct spawner_client;

/* Stored by the keeper: numbers never change. */
enum holding_kind {
    HOLDING_SOCKET = 1, /* the control socket */
    HOLDING_WORKER = 2,
    HOLDING_SERVICE = 3,
    HOLDING_CLIENT = 4,  /* a ring client */
    HOLDING_STATES = 5,  /* the memory of kept-state.h */
    HOLDING_SUBMITS = 6, /* a worker's submit_socket */
};

#define HOLDING_NAME_MAX 255 /* bytes, without the NUL */
#define HOLDING_DATA_MAX 252
#define HOLDING_FDS_MAX  16

/* Precedes the name, with its NUL, and the owner's data. The layout never changes: data has a
 * version of its own. */
struct holding_head {
    uint16_t kind;
    uint16_t version;
};

struct holding_content {
    enum holding_kind kind;
    uint16_t version; /* of `data` */
    const char *name; /* unique among its kind */
    const void *data;
    size_t size;    /* at most HOLDING_DATA_MAX */
    const int *fds; /* borrowed; in an order of the owner's, without the process's pidfd */
    size_t n_fds;   /* at most HOLDING_FDS_MAX */
};

/* Embedded in the owner. Valid when zeroed. */
struct holding {
    uint64_t id; /* 0 = nothing is held */
};

/*
 * Holds this, instead of what was held before. `client` is the process's, whose pid is `pid`; or
 * one of spawner_register(), and `pid` is 0. Returns 0, -ESRCH if the process has ended, -E2BIG,
 * -ENOMEM or -errno.
 */
int holding_put(struct holding *holding, struct spawner *spawner,
                const struct spawner_client *client, pid_t pid,
                const struct holding_content *content);

/* Replaces the first descriptor of what is held; the others stay. Returns 0, -ESRCH if nothing is
 * held, -ENOMEM or -errno. */
int holding_replace_fd(const struct holding *holding, struct spawner *spawner, int fd);

/*
 * Drops it. Until then the keeper also keeps how the process ended, so the owner calls this once it
 * has dealt with the end. Idempotent.
 */
void holding_drop(struct holding *holding, struct spawner *spawner);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Things that the keeper holds for the next supervisor: for a worker, a service or a ring client,
 * its descriptors and some bytes that say what they are. After a crash or an upgrade the next
 * supervisor finds them by kind and name. A process that is not held ends with the supervisor.
 *
 * The bytes come from the supervisor and go back to the next one, which may be another version: the
 * owner of a kind keeps a version of its data, and reads the version before.
 */

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/keeper/message.h"
#include "supervisor/process/spawner.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Stored by the keeper: numbers never change. */
enum holding_kind {
    HOLDING_SOCKET = 1, /* the control socket */
    HOLDING_WORKER = 2,
    HOLDING_SERVICE = 3,
    HOLDING_CLIENT = 4,  /* a ring client */
    HOLDING_STATES = 5,  /* the memory of kept-state.h */
    HOLDING_SUBMITS = 6, /* a worker's submit_socket */
    HOLDING_CONFIG = 7,  /* the text of a group's configuration */
};

#define HOLDING_NAME_MAX 143 /* bytes, without the NUL: the longest name of a worker */
#define HOLDING_DATA_MAX 108
#define HOLDING_FDS_MAX  HOLD_FDS_MAX

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
 * Holds the content, in place of what was held before. `client` is that of the process `pid`; or
 * one of spawner_register(), and `pid` is 0. Returns 0, -ESRCH if the process has ended and was not
 * held, -E2BIG, -ENOMEM or -errno.
 */
int holding_put(struct holding *holding, struct spawner *spawner,
                const struct spawner_client *client, pid_t pid,
                const struct holding_content *content);

/* Holds a copy of a text under the client's id, which it gets if it has none. Returns 0 or -errno.
 */
int holding_put_text(struct holding *holding, struct spawner *spawner,
                     struct spawner_client *client, const struct holding_content *content,
                     const char *text, size_t size);

/*
 * Drops what is held. Until then the keeper also keeps how the process ended, so the owner calls
 * this once it has dealt with the end. Idempotent.
 */
void holding_drop(struct holding *holding, struct spawner *spawner);

/* ---- what the last supervisor has left ---- */

/*
 * Things that the keeper held for this supervisor: workers, services and ring clients that
 * have outlived the previous one. All of it is collected before the loop runs. Each owner takes
 * what is its own, by kind and name; the rest is killed and dropped. At the very first start there
 * is nothing, so there is one path of starting only.
 *
 *     struct held *held = held_take(table, HOLDING_WORKER, "group/0");
 *     if (held && can_use(held->version, held->data, held->size)) {
 *         self->fd = TAKE_FD(held->fds[0]);
 *         held_adopt(held, &self->client, &self->holding);   // frees it
 *     } else if (held)
 *         held_discard(held);
 */

struct held_table {
    struct spawner *spawner;
    struct list waiting;   /* struct held.link: not taken yet */
    struct list discarded; /* until their processes end */
    struct index names;
    struct message_held_end end;
    int lost; /* -errno: the descriptors of some are lost; 0 = of none */
    /* Called with change 1 when a worker is discarded, whose jobs run until it has ended, and with
     * -1 when it has ended. NULL = not called. */
    void (*worker_ends)(void *userdata, const char *name, int change);
    void *userdata;
};

struct held {
    struct held_table *table;
    struct list link;
    struct index_entry entry;
    struct spawner_client client; /* stands for the process until held_adopt() */
    struct holding holding;
    enum holding_kind kind;
    uint16_t version;
    const char *name;
    const uint8_t *data;
    size_t size;
    size_t n_fds;
    int fds[HOLDING_FDS_MAX]; /* close-on-exec; TAKE_FD() what you keep */
    pid_t pid;                /* 0 = no process */
    int pidfd;                /* -1 = no process, or it has ended; TAKE_FD() */
    bool ended;               /* the process has ended and is reaped */
    bool discarded;
    struct spawn_exit how; /* if it has ended */
    uint8_t bytes[];
};

/* Collects all, blocking for at most `timeout`. If descriptors are lost, because there are too
 * many, the entry has none. Returns 0, -ETIMEDOUT, -EPROTO or -errno: then the keeper still holds
 * all for another supervisor, such as the program before an upgrade. Does nothing without a keeper.
 * Call it before the spawner's first request. `table` is valid even after an error. */
int held_collect(struct held_table *table, struct spawner *spawner, usec_t timeout);
/* Frees all, and neither kills nor drops anything. Harmless on a zeroed table. */
void held_deinit(struct held_table *table);

/* Returns what the predecessor held under this kind and name, or NULL. It is valid as long as the
 * table, until the caller passes it to held_adopt() or held_discard(). */
struct held *held_take(struct held_table *table, enum holding_kind kind, const char *name);
/* Returns what held_take() would, and leaves it there. */
const struct held *held_find(const struct held_table *table, enum holding_kind kind,
                             const char *name);
/* Reads the text of holding_put_text(). Returns 0 with `*ret`, owned by the caller, or -errno. */
int held_read_text(const struct held *held, char **ret, size_t *ret_size);
/* Returns whether a worker or service of this group was held and is not taken. */
bool held_has_group(const struct held_table *table, const char *group);
/* Iterates over those of this kind that were not taken; NULL at the end. `after` NULL = the first.
 */
const struct held *held_next(const struct held_table *table, enum holding_kind kind,
                             const struct held *after);
/* Returns any of this kind, or NULL. */
struct held *held_take_any(struct held_table *table, enum holding_kind kind);

/*
 * Passes the entry on: `holding` holds it from now on, and `client`, whose handler is set, is
 * called when the process ends, unless it has `ended`. Frees the entry, and closes the descriptors
 * that were not taken.
 */
void held_adopt(struct held *held, struct spawner_client *client, struct holding *holding);
/* Kills the process and drops what is held. */
void held_discard(struct held *held);
/* Returns how many workers of the group were discarded and have not ended. For a group that did not
 * exist when worker_ends() was called. */
uint32_t held_n_ending(const struct held_table *table, const char *group);
/* Discards what has not been taken. */
void held_discard_rest(struct held_table *table);

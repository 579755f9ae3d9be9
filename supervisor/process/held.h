/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the keeper held for this supervisor (holding.h): workers, services and ring clients that
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

#include "shared/base/clock.h"
#include "shared/base/index.h"
#include "shared/base/list.h"
#include "supervisor/keeper/message.h"
#include "supervisor/process/holding.h"
#include "supervisor/process/spawner.h"
#include <stdbool.h>

struct held_table {
    struct spawner *spawner;
    struct list waiting;   /* struct held.link: not taken yet */
    struct list discarded; /* until their processes end */
    struct index names;
    struct message_held_end end;
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

/* Collects all, blocking for at most `timeout`. Returns 0, -ETIMEDOUT, -EPROTO or -errno; does
 * nothing without a keeper. Call it before the spawner's first request. `table` is valid even after
 * an error. */
int held_collect(struct held_table *table, struct spawner *spawner, usec_t timeout);
/* Frees all, and neither kills nor drops anything. Harmless on a zeroed table. */
void held_deinit(struct held_table *table);

/* Returns what the predecessor held under this kind and name, or NULL. The caller ends it with
 * held_adopt() or held_discard(), at once or later. Valid until then, if the table is. */
struct held *held_take(struct held_table *table, enum holding_kind kind, const char *name);
/* Whether held_take() would find anything. */
bool held_has(const struct held_table *table, enum holding_kind kind, const char *name);
/* Returns whether a worker or service of this group was held and is not taken. */
bool held_has_group(const struct held_table *table, const char *group);
/* Iterates over those of this kind that were not taken; NULL at the end. `after` NULL = the first.
 */
const struct held *held_next(const struct held_table *table, enum holding_kind kind,
                             const struct held *after);
/* Returns any of this kind, or NULL. */
struct held *held_take_any(struct held_table *table, enum holding_kind kind);

/*
 * Passes it on: `holding` holds it from now on, and `client`, whose handler is set, is called when
 * the process ends, unless it has `ended`. Frees it, and closes the descriptors that were not
 * taken.
 */
void held_adopt(struct held *held, struct spawner_client *client, struct holding *holding);
/* Kills the process and drops what is held. */
void held_discard(struct held *held);
/* Discards what nobody has taken. */
void held_discard_rest(struct held_table *table);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages between supervisor and keeper, on a SOCK_SEQPACKET pair. Each is one datagram of bounded
 * size, with its descriptors. Numbers are in native form. After an
 * upgrade the two programs are of different versions: change a message only together with
 * MESSAGE_VERSION. The supervisor refuses to run under a keeper of another version. A keeper logs
 * and ignores a request that it does not know: a request on which nothing depends, like NEXT, STAY
 * and SPARE, may be added.
 *
 *   supervisor → keeper
 *     SPAWN    id, struct spawn_options; its descriptors
 *     KILL     id, pid: SIGKILL to the process and its group, if it is not reaped
 *     SPARE    id, pid, spared: if true, descendants of the process are not killed when it ends; a
 *              later SPARE with false kills them
 *     REPLACE  id; descriptor: instead of the first one of what is held
 *     HOLD     id, pid, bytes; descriptors: kept for the next supervisor, and replace what was
 *              held under this id
 *     RELEASE  id: drops what is held under this id, and how its process ended
 *     READY    from now on the keeper starts another supervisor when this one crashes; the upgrade
 *              has succeeded, if this is one
 *     FORGIVE  ends safe mode: earlier crashes do not count any more
 *     NEXT     this supervisor is about to end for an upgrade: starts the new program, which
 *              waits for HELD_END until that has happened
 *     STAY     it does not end: the upgrade has failed
 *   keeper → supervisor
 *     HELD     id, pid, bytes, how the process ended; its pidfd if it runs, and the descriptors
 *     HELD_END follows the last HELD
 *     SPAWNED  id, pid, error; a pidfd unless there is an error
 *     EXITED   id, struct spawn_exit; the process is reaped before the next request is taken
 *
 * The supervisor chooses the ids. SPAWNED comes before EXITED. A new supervisor first receives a
 * HELD for each id that its predecessor had held, and HELD_END; the very first one receives
 * HELD_END only. When a supervisor ends, the keeper kills all processes whose ids are not held.
 */

#include "supervisor/keeper/spawn.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_VERSION 7

#define MESSAGE_SIZE_MAX    ((size_t)128 * 1024)
#define MESSAGE_FDS_MAX     (SPAWN_FDS_MAX + 5)
#define MESSAGE_STRINGS_MAX 8192 /* arguments and variables together */

#define HOLD_BYTES_MAX 512
#define HOLD_FDS_MAX   16

enum message_kind {
    MESSAGE_SPAWN = 1,
    MESSAGE_KILL,
    MESSAGE_SPAWNED,
    MESSAGE_EXITED,
    MESSAGE_HOLD,
    MESSAGE_REPLACE,
    MESSAGE_RELEASE,
    MESSAGE_HELD,
    MESSAGE_HELD_END,
    MESSAGE_READY,
    MESSAGE_FORGIVE,
    MESSAGE_NEXT,
    MESSAGE_STAY,
    MESSAGE_SPARE,
};

/* A message, under construction or received. About 128 KiB, so usually static. */
struct message {
    size_t size;  /* bytes in `data` */
    size_t taken; /* bytes read so far */
    int error;    /* the first -errno of a put or take; turns later ones into no-ops */
    size_t n_fds;
    int fds[MESSAGE_FDS_MAX];
    uint8_t data[MESSAGE_SIZE_MAX];
};

struct message_spawned {
    uint64_t id;
    pid_t pid;
    int error; /* 0 or -errno */
};

struct message_kill {
    uint64_t id;
    pid_t pid;
};

struct message_spare {
    uint64_t id;
    pid_t pid;
    bool spared;
};

struct message_exited {
    uint64_t id;
    struct spawn_exit how;
};

struct message_hold {
    uint64_t id;
    pid_t pid;         /* 0 = no process */
    const void *bytes; /* opaque to the keeper; at most HOLD_BYTES_MAX */
    size_t size;
    const int *fds; /* at most HOLD_FDS_MAX */
    size_t n_fds;
};

/* Another first descriptor of what is held. */
struct message_replace {
    uint64_t id;
    int fd;
};

struct message_held {
    struct message_hold hold; /* with a pid that may have been used again if `ended` */
    bool ended;               /* the process has ended, and is reaped */
    struct spawn_exit how;    /* `unknown` if it ended long before it was held */
    int pidfd;                /* -1 = no process, or it has ended */
};

struct message_held_end {
    uint32_t n_restarts;        /* after crashes of the supervisor */
    uint32_t n_upgrades;        /* finished ones */
    uint32_t n_failed_upgrades; /* after which the old program was started again */
    bool first;                 /* no supervisor has been ready before */
    bool upgrading;             /* READY finishes an upgrade */
    bool safe_mode;             /* the supervisor crashes again and again; not in an upgrade */
};

/* A received SPAWN, with the storage behind the pointers of `options`. */
struct message_spawn {
    uint64_t id;
    uint32_t output; /* with pipe_output: which of the message's descriptors is standard output */
    struct spawn_options options;
    struct spawn_fd fds[SPAWN_FDS_MAX];
    struct spawn_rlimit rlimits[SPAWN_RLIMITS_MAX];
    gid_t groups[SPAWN_GROUPS_MAX];
    struct sandbox sandbox;
    struct sandbox_files files;
    struct sandbox_network network;
    char *strings[MESSAGE_STRINGS_MAX + 2]; /* of both vectors, each with its NULL */
};

/* Each overwrites `message`. Descriptors are borrowed. Returns 0 or -E2BIG. */
int message_put_spawn(struct message *message, uint64_t id, const struct spawn_options *options);
int message_put_kill(struct message *message, const struct message_kill *kill);
int message_put_spare(struct message *message, const struct message_spare *spare);
int message_put_spawned(struct message *message, const struct message_spawned *spawned, int pidfd);
int message_put_exited(struct message *message, const struct message_exited *exited);
int message_put_hold(struct message *message, const struct message_hold *hold);
int message_put_replace(struct message *message, const struct message_replace *replace);
/* RELEASE, or with id 0 READY, FORGIVE, NEXT and STAY. */
int message_put_simple(struct message *message, enum message_kind kind, uint64_t id);
int message_put_held(struct message *message, const struct message_held *held);
int message_put_held_end(struct message *message, const struct message_held_end *end);

/* Returns the kind of a received message, 0 if there is none. Call it before the matching
 * function below. */
unsigned message_take_kind(struct message *message);

/* Returns 0, or -EBADMSG if the message is malformed. Pointers and descriptors in a result are
 * those of `message`. */
/* What the keeper needs of it: id, output, and of the options report_fd, cgroup_fd, private_pids
 * and pipe_output. The new process takes the whole. */
int message_take_spawn_head(struct message *message, struct message_spawn *ret);
int message_take_spawn(struct message *message, struct message_spawn *ret);
int message_take_kill(struct message *message, struct message_kill *ret);
int message_take_spare(struct message *message, struct message_spare *ret);
int message_take_spawned(struct message *message, struct message_spawned *ret);
int message_take_exited(struct message *message, struct message_exited *ret);
int message_take_hold(struct message *message, struct message_hold *ret);
int message_take_replace(struct message *message, struct message_replace *ret);
int message_take_release(struct message *message, uint64_t *ret_id);
int message_take_held(struct message *message, struct message_held *ret);
int message_take_held_end(struct message *message, struct message_held_end *ret);

/* Returns 0, -EAGAIN when the channel is full, -ENOBUFS when the kernel lacks memory or too many
 * descriptors are in flight (poll(2) does not report when that is over), or -errno. */
int message_send(int fd, const struct message *message);
/*
 * Returns 0, -EAGAIN when no message is there, -EPIPE when the peer has closed, -EMFILE when
 * descriptors were lost because the table is full (the rest is received), or -errno. The
 * descriptors are the caller's, close-on-exec.
 */
int message_receive(int fd, struct message *message);
void message_close_fds(struct message *message);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages between supervisor and keeper, on a SOCK_SEQPACKET pair. Each is one datagram of bounded
 * size, with its descriptors. Numbers are in native form. After an upgrade the two programs are of
 * different versions: change a message only together with MESSAGE_VERSION. The supervisor refuses
 * to run under a keeper of another version. A keeper logs and ignores a request that it does not
 * know: a request on which nothing depends, like SPARE, may be added.
 *
 *   supervisor → keeper
 *     SPAWN    id, struct spawn_options; its descriptors
 *     KILL     id, pid: SIGKILL to the process and its group, if it is not reaped
 *     ADOPT    id, pid, contained: answered by SPAWNED, as if the keeper had started this process,
 *              which is its child already; -ECHILD if it is not, or is known
 *     SPARE    id, pid, spared: if true, descendants of the process are not killed when it ends; a
 *              later SPARE with false kills them
 *     HOLD     id, pid, bytes; descriptors: kept for the next supervisor, and replace what was
 *              held under this id
 *     RELEASE  id: drops what is held under this id, and how its process ended
 *     READY    from now on the keeper starts another supervisor when this one crashes; the upgrade
 *              has succeeded, if this is one
 *     FORGIVE  ends safe mode: earlier crashes do not count any more
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

#define MESSAGE_VERSION 13

#define MESSAGE_SIZE_MAX    ((size_t)128 * 1024)
#define MESSAGE_FDS_MAX     (SPAWN_FDS_MAX + 6)
#define MESSAGE_STRINGS_MAX 8192 /* arguments and variables together */

#define HOLD_BYTES_MAX 256
#define HOLD_FDS_MAX   8

enum message_kind {
    MESSAGE_SPAWN = 1,
    MESSAGE_KILL,
    MESSAGE_SPAWNED,
    MESSAGE_EXITED,
    MESSAGE_HOLD,
    MESSAGE_RELEASE,
    MESSAGE_HELD,
    MESSAGE_HELD_END,
    MESSAGE_READY,
    MESSAGE_FORGIVE,
    MESSAGE_SPARE = 13, /* older supervisors also send 11 and 12, which may be ignored */
    MESSAGE_ADOPT,
};

/* How many supervisors there were before, and how they ended. */
struct message_held_end {
    uint32_t n_restarts;        /* after crashes of the supervisor */
    uint32_t n_upgrades;        /* finished ones */
    uint32_t n_failed_upgrades; /* after which the old program was started again */
    bool first;                 /* no supervisor has been ready before */
    bool upgrading;             /* READY finishes an upgrade */
    bool safe_mode;             /* the supervisor crashes again and again; not in an upgrade */
};

/*
 * A message without its descriptors, as far as `bytes` are used. SPAWN has the rest of its options
 * there. Fields that a kind does not use are 0. The keeper reads no `bool` that the supervisor has
 * written, as it could hold anything.
 */
struct message_record {
    uint32_t kind;  /* enum message_kind */
    uint16_t size;  /* HOLD, HELD: of `bytes`, which are opaque to the keeper */
    uint8_t n_fds;  /* HOLD, HELD: the first descriptors of the message are those that are held */
    uint8_t spared; /* SPARE */
    uint8_t contained; /* ADOPT */
    uint64_t id;
    pid_t pid;     /* 0 = no process; of HELD, another process may have it if `ended`;
                      SPAWN: spawn_options.output_owner */
    int32_t error; /* SPAWNED: 0 or -errno */
    uint8_t private_pids, pipe_output, has_cgroup; /* SPAWN: its descriptors are report_fd,
                                                      cgroup_fd if there is one, and others */
    uint8_t output;        /* SPAWN: which descriptor is standard output, with pipe_output */
    bool ended;            /* HELD: the process has ended, and is reaped */
    struct spawn_exit how; /* EXITED; HELD if `ended`: `unknown` if it ended long before the HOLD */
    struct message_held_end end; /* HELD_END */
    uint8_t bytes[HOLD_BYTES_MAX];
};

/* A message, under construction or received. About 128 KiB, so usually static. */
struct message {
    size_t size;  /* bytes in `data` */
    size_t taken; /* bytes read so far */
    int error;    /* the first -errno of a put or take; turns later ones into no-ops */
    size_t n_fds;
    int fds[MESSAGE_FDS_MAX];
    union {
        struct message_record record;
        uint8_t data[MESSAGE_SIZE_MAX];
    };
};

/* The options of a received SPAWN, with the storage behind their pointers. */
struct message_spawn {
    struct spawn_options options;
    struct spawn_fd fds[SPAWN_FDS_MAX];
    struct spawn_rlimit rlimits[SPAWN_RLIMITS_MAX];
    gid_t groups[SPAWN_GROUPS_MAX];
    struct sandbox sandbox;
    struct sandbox_files files;
    struct sandbox_network network;
    char *strings[MESSAGE_STRINGS_MAX + 2]; /* of both vectors, each with its NULL */
};

/* Overwrites the message with a record that is zeroed but for these; returns it to be filled in. */
struct message_record *message_begin(struct message *message, enum message_kind kind, uint64_t id);
/* Adds a descriptor, which is borrowed; without room, sets `error`. */
void message_put_fd(struct message *message, int fd);
/* Puts what is held into HOLD or HELD. Returns 0, or -E2BIG above HOLD_BYTES_MAX or HOLD_FDS_MAX.
 */
int message_put_held(struct message *message, const void *bytes, size_t size, const int *fds,
                     size_t n_fds);
/* Begins and puts a SPAWN. Descriptors are borrowed. Returns 0 or -E2BIG. */
int message_put_spawn(struct message *message, uint64_t id, const struct spawn_options *options);

/* Returns the kind of a received message; 0 if there is none, or its size is not that of its
 * record. */
unsigned message_kind_of(const struct message *message);
/* Takes what the keeper needs of a SPAWN: report_fd, cgroup_fd, private_pids and pipe_output. The
 * new process takes the whole. Both return 0, or -EBADMSG if the message is malformed. Pointers and
 * descriptors in a result are those of `message`. */
int message_take_spawn_head(struct message *message, struct message_spawn *ret);
int message_take_spawn(struct message *message, struct message_spawn *ret);

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

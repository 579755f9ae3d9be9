/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages between supervisor and keeper, on a SOCK_SEQPACKET pair. Each is one datagram of bounded
 * size, with its descriptors. Both programs come from one build, so numbers are in native form.
 *
 *   supervisor → keeper
 *     SPAWN    id, struct spawn_options; its descriptors
 *     KILL     id, pid: SIGKILL to the process and its group, if it is not reaped
 *   keeper → supervisor
 *     SPAWNED  id, pid, error; a pidfd unless there is an error
 *     EXITED   id, struct spawn_exit; the process is reaped before the next request is taken
 *
 * The supervisor chooses the ids. SPAWNED comes before EXITED.
 */

#include "supervisor/keeper/spawn.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_SIZE_MAX    ((size_t)128 * 1024)
#define MESSAGE_FDS_MAX     (SPAWN_FDS_MAX + 2)
#define MESSAGE_STRINGS_MAX 8192 /* arguments and variables together */

enum message_kind {
    MESSAGE_SPAWN = 1,
    MESSAGE_KILL,
    MESSAGE_SPAWNED,
    MESSAGE_EXITED,
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

struct message_exited {
    uint64_t id;
    struct spawn_exit how;
};

/* A received SPAWN, with the storage behind the pointers of `options`. */
struct message_spawn {
    uint64_t id;
    struct spawn_options options;
    struct spawn_fd fds[SPAWN_FDS_MAX];
    struct spawn_rlimit rlimits[SPAWN_RLIMITS_MAX];
    gid_t groups[SPAWN_GROUPS_MAX];
    char *strings[MESSAGE_STRINGS_MAX + 2]; /* of both vectors, each with its NULL */
};

/* Each overwrites `message`. Descriptors are borrowed. Returns 0 or -E2BIG. */
int message_put_spawn(struct message *message, uint64_t id, const struct spawn_options *options);
int message_put_kill(struct message *message, const struct message_kill *kill);
int message_put_spawned(struct message *message, const struct message_spawned *spawned, int pidfd);
int message_put_exited(struct message *message, const struct message_exited *exited);

/* Returns the kind of a received message, 0 if there is none. Call it before the matching
 * function below. */
unsigned message_take_kind(struct message *message);

/* Returns 0, or -EBADMSG if the message is malformed. Results of message_take_spawn() point into
 * `message`. */
int message_take_spawn(struct message *message, struct message_spawn *ret);
int message_take_kill(struct message *message, struct message_kill *ret);
int message_take_spawned(struct message *message, struct message_spawned *ret);
int message_take_exited(struct message *message, struct message_exited *ret);

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

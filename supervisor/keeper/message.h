/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What supervisor and keeper say to each other: one bounded message per datagram of a
 * SOCK_SEQPACKET pair, with the descriptors that belong to it. Both ends are the same program, so
 * numbers are in the machine's own form. Fields are put and taken one by one, and wire_end()
 * says whether everything was consumed.
 *
 *   supervisor → keeper
 *     SPAWN    id, struct spawn_options; its descriptors
 *     KILL     id, pid: SIGKILL to the process and its group, if it is not reaped
 *   keeper → supervisor
 *     SPAWNED  id, pid, error; a pidfd unless there is an error
 *     EXITED   id, struct spawn_exit; the process is reaped before the next request is taken
 *
 * An id is chosen by the supervisor. SPAWNED comes before EXITED.
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

/* One message: under construction or just received. About 128 KiB, so usually static. */
struct message {
    size_t size;  /* of `data` in use */
    size_t taken; /* how much of it was read */
    int error;    /* the first -errno of a put or take; everything after it does nothing */
    size_t n_fds;
    int fds[MESSAGE_FDS_MAX];
    uint8_t data[MESSAGE_SIZE_MAX];
};

struct message_spawned {
    uint64_t id;
    pid_t pid;
    int error; /* -errno, and no process */
};

struct message_kill {
    uint64_t id;
    pid_t pid;
};

struct message_exited {
    uint64_t id;
    struct spawn_exit how;
};

/* Room for what struct spawn_options points to. */
struct message_spawn {
    uint64_t id;
    struct spawn_options options;
    struct spawn_fd fds[SPAWN_FDS_MAX];
    struct spawn_rlimit rlimits[SPAWN_RLIMITS_MAX];
    gid_t groups[SPAWN_GROUPS_MAX];
    char *strings[MESSAGE_STRINGS_MAX + 2]; /* of both vectors, with their NULLs */
};

/*
 * Each begins the message anew. 0 or -E2BIG. Descriptors are borrowed: they are sent along, and
 * stay the caller's.
 */
int message_put_spawn(struct message *message, uint64_t id, const struct spawn_options *options);
int message_put_kill(struct message *message, const struct message_kill *kill);
int message_put_spawned(struct message *message, const struct message_spawned *spawned, int pidfd);
int message_put_exited(struct message *message, const struct message_exited *exited);

/* The kind of a received message, which the fitting function below then takes apart; 0 = none. */
unsigned message_take_kind(struct message *message);

/* 0, or -EBADMSG for what nobody could have put. Results of take_spawn point into `message`. */
int message_take_spawn(struct message *message, struct message_spawn *ret);
int message_take_kill(struct message *message, struct message_kill *ret);
int message_take_spawned(struct message *message, struct message_spawned *ret);
int message_take_exited(struct message *message, struct message_exited *ret);

/* 0, -EAGAIN when the channel is full, -ENOBUFS when the kernel lacks memory or this user has too
 * many descriptors under way (poll(2) does not tell when that is over), -errno. */
int message_send(int fd, const struct message *message);
/*
 * 0, -EAGAIN when there is none, -EPIPE when the other end is closed, -EMFILE when descriptors were
 * lost for want of room (the rest of the message is there), -errno. The descriptors are the
 * caller's, close-on-exec.
 */
int message_receive(int fd, struct message *message);
void message_close_fds(struct message *message);

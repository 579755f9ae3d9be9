/* SPDX-License-Identifier: MIT */
#pragma once

/* The process at the other end of a connection, as the kernel recorded it when it connected. */

#include "supervisor/config/config.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct submit_socket;

struct peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* supplementary: up to 65536, which a subgid(5) range allows; sorted */
    size_t n_groups;
    /* The group of the worker over whose own socket (submit-socket.h) it came; NULL = none. Only
     * what that gives counts then, and neither user nor groups. */
    char *worker_of;
    const struct submit_socket *worker; /* that socket; NULL = none, or the worker is dead */
};

/* clang-format off */
#define PEER_NULL {0}
/* clang-format on */

/* 0 or -errno of getsockopt(2), -ENOMEM. */
int peer_init(struct peer *peer, int fd);
void peer_deinit(struct peer *peer);

/* Whether the group is its own or a supplementary one. */
bool peer_is_member(const struct peer *peer, gid_t gid);

/* Whether it may change things: root, the supervisor's user and members of AdminGroup= may. */
bool peer_may_change(const struct peer *peer, const struct config_daemon *config);

#define PEER_NEEDED_MAX 256

/* Describes who may, for a refusal. `text` holds PEER_NEEDED_MAX bytes. */
void peer_describe_needed(char *text, const struct config_daemon *config);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who is at the other end of a connection, by the kernel's word at the time it connected.
 */

#include "supervisor/config/config.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct peer {
    pid_t pid;
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* supplementary */
    size_t n_groups;
};

/* clang-format off */
#define PEER_NULL {0}
/* clang-format on */

/* 0 or -errno of getsockopt(2), -ENOMEM. */
int peer_init(struct peer *peer, int fd);
void peer_deinit(struct peer *peer);

/* Whether that is one of its groups. */
bool peer_is_member(const struct peer *peer, gid_t gid);

/* Whether it may change things: root, the supervisor's user, members of AdminGroup=. */
bool peer_may_change(const struct peer *peer, const struct config_daemon *config);

#define PEER_NEEDED_MAX 256

/* Who may, in words, for a refusal. `text` holds PEER_NEEDED_MAX bytes. */
void peer_describe_needed(char *text, const struct config_daemon *config);

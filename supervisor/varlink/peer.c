/* SPDX-License-Identifier: MIT */

#include "supervisor/varlink/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
    const gid_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The kernel has sorted them, by their numbers in its own user namespace. */
static void sort_groups(struct peer *peer)
{
    for (size_t i = 1; i < peer->n_groups; i++) {
        if (peer->groups[i - 1] > peer->groups[i]) {
            qsort(peer->groups, peer->n_groups, sizeof(*peer->groups), compare);
            return;
        }
    }
}

int peer_init(struct peer *peer, int fd)
{
    struct ucred credentials;
    socklen_t size = sizeof(credentials);

    *peer = (struct peer)PEER_NULL;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
        return -errno;
    peer->pid = credentials.pid;
    peer->uid = credentials.uid;
    peer->gid = credentials.gid;

    /* The first call has no room: the kernel returns the size. */
    size = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0 || errno != ERANGE)
        return 0;
    peer->groups = malloc(size);
    if (!peer->groups)
        return -ENOMEM;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer->groups, &size) < 0) {
        int error = -errno;

        peer_deinit(peer);
        return error;
    }
    peer->n_groups = size / sizeof(gid_t);
    sort_groups(peer);
    return 0;
}

void peer_deinit(struct peer *peer)
{
    free(peer->groups);
    free(peer->worker_of);
    *peer = (struct peer)PEER_NULL;
}

bool peer_is_member(const struct peer *peer, gid_t gid)
{
    return peer->gid == gid || (peer->n_groups > 0 &&
                                bsearch(&gid, peer->groups, peer->n_groups, sizeof(gid), compare));
}

bool peer_may_change(const struct peer *peer, const struct config_daemon *config)
{
    return !peer->worker_of && (peer->uid == 0 || peer->uid == geteuid() ||
                                (config->admin_group && peer_is_member(peer, config->admin_gid)));
}

void peer_describe_needed(char *text, const struct config_daemon *config)
{
    char user[48] = "";

    if (geteuid() != 0)
        snprintf(user, sizeof(user), ", the supervisor's user (uid %u)", (unsigned)geteuid());
    if (config->admin_group)
        snprintf(text, PEER_NEEDED_MAX, "root%s or a member of the group %.64s (AdminGroup=)", user,
                 config->admin_group);
    else
        snprintf(text, PEER_NEEDED_MAX, "root%s; AdminGroup= is not set", user);
}

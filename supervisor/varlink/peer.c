/* SPDX-License-Identifier: MIT */

#include "supervisor/varlink/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

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
    if (peer->gid == gid)
        return true;
    for (size_t i = 0; i < peer->n_groups; i++)
        if (peer->groups[i] == gid)
            return true;
    return false;
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

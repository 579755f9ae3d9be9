/* SPDX-License-Identifier: MIT */
#include "supervisor/web/seat.h"

#include "supervisor/web/visitor.h"
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static uint64_t peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    uint64_t peer = 0;

    if (address && address->sa_family == AF_INET)
        peer = ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr;
    else if (address && address->sa_family == AF_INET6)
        memcpy(&peer, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
               sizeof(peer));
    return peer;
}

void seat_take(struct seat *seat, struct list *seats, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    *seat = (struct seat){
        .connection = connection, .fd = info ? info->connect_fd : -1, .peer = peer_of(connection)};
    list_push_back(seats, &seat->node);
}

static unsigned count_of_peer(const struct list *seats, uint64_t peer)
{
    unsigned n = 0;

    list_for_each_entry (seat, seats, struct seat, node)
        n += !seat->over && seat->peer == peer;
    return n;
}

struct seat *seat_make_room(const struct list *seats, unsigned max)
{
    struct seat *victim = NULL;
    unsigned most = 0, n_live = 0;

    list_for_each_entry (seat, seats, struct seat, node) {
        const unsigned n = seat->over ? 0 : count_of_peer(seats, seat->peer);

        n_live += !seat->over;
        if (n > most) {
            most = n;
            victim = seat;
        }
    }
    if (!victim || n_live < max)
        return NULL;
    victim->over = true;
    visitor_end(victim->connection);
    return victim;
}

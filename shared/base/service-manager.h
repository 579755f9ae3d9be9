/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reports the state of this process to the service manager, by the protocol of sd_notify(3). That
 * function blocks while the manager's socket is full. Here a state that cannot be sent immediately
 * is kept, the newest of each kind, for service_manager_send(), which the caller repeats after
 * SERVICE_MANAGER_RETRY.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <sys/un.h>

#define SERVICE_STATUS_MAX    512 /* with the NUL; longer is cut */
#define SERVICE_MANAGER_RETRY (100 * USEC_PER_MSEC)

/* In the order in which they are sent. */
enum service_state {
    SERVICE_RELOADING = 1u << 0, /* of Type=notify-reload: it ends with SERVICE_READY */
    SERVICE_READY = 1u << 1,
    SERVICE_STOPPING = 1u << 2, /* replaces earlier states that were not sent */
    SERVICE_ALIVE = 1u << 3,
};

struct service_manager {
    int fd;              /* -1 = there is no manager, and every call does nothing */
    unsigned pending;    /* states not yet sent */
    usec_t reloading_at; /* with RELOADING=1 */
    bool status_changed;
    char status[SERVICE_STATUS_MAX];
};

/* clang-format off */
#define SERVICE_MANAGER_NULL {.fd = -1}
/* clang-format on */

/* Takes the address from $NOTIFY_SOCKET. If no manager listens there, `fd` stays -1. */
void service_manager_connect(struct service_manager *manager);
void service_manager_close(struct service_manager *manager);

/* Reports a state. Also sends pending states, like service_manager_status(). `now`: for RELOADING.
 */
void service_manager_tell(struct service_manager *manager, enum service_state state, usec_t now);
/* The first line of `status`, for `systemctl status`; an unchanged one is not sent again. */
void service_manager_status(struct service_manager *manager, const char *status);

/* Sends pending states. Returns false if some must be sent later. */
bool service_manager_send(struct service_manager *manager);

/* Makes an address of a path or, with "@" in front, an abstract name. Returns its size,
 * -EAFNOSUPPORT or -ENAMETOOLONG. */
int service_manager_address(const char *path, struct sockaddr_un *ret);

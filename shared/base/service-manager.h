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

#define SERVICE_STATUS_MAX    512 /* with the NUL; longer is cut */
#define SERVICE_MANAGER_RETRY (100 * USEC_PER_MSEC)

struct service_manager {
    int fd;              /* -1 = there is no manager, and every call does nothing */
    unsigned pending;    /* states not yet sent; private bits */
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

/* Each of these functions also sends pending states. */
void service_manager_ready(struct service_manager *manager);
/* Also begins a reload for Type=notify-reload: it ends with service_manager_ready(). */
void service_manager_reloading(struct service_manager *manager, usec_t now);
/* Replaces earlier states that were not sent. */
void service_manager_stopping(struct service_manager *manager);
/* A sign of life. */
void service_manager_alive(struct service_manager *manager);
/* The first line of `status`, for `systemctl status`; an unchanged one is not sent again. */
void service_manager_status(struct service_manager *manager, const char *status);

/* Sends pending states. Returns false if some must be sent later. */
bool service_manager_send(struct service_manager *manager);

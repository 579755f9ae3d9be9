/* SPDX-License-Identifier: MIT */
#pragma once

/* Tells the service manager how this program is, by the protocol of sd_notify(3). That function
 * would block the loop while the manager does not read; here, what it cannot take is sent later. */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <sys/un.h>

struct notice {
    int fd; /* -1 = nobody is to be told */
    struct sockaddr_un address;
    unsigned address_size;
    bool ready, stopping; /* to be said yet */
    bool has_status;      /* the same */
    char status[512];
    usec_t retry_at; /* USEC_INFINITY = all has been said */
};

/* Takes the address from $NOTIFY_SOCKET. */
void notice_init(struct notice *notice);
void notice_deinit(struct notice *notice);

/* `status` is copied; a longer one is cut. */
void notice_ready(struct notice *notice, const char *status);
void notice_stopping(struct notice *notice, const char *status);
void notice_status(struct notice *notice, const char *status);

/* Says what is left to say. Returns when to call it again (monotonic). */
usec_t notice_serve(struct notice *notice, usec_t now);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Notification of the service manager (service-manager.h) from the loop, with signs of life. The
 * manager listens to its main process, the keeper, which forwards these texts. */

#include "shared/base/service-manager.h"
#include "supervisor/loop/timer.h"
#include <stdbool.h>

struct notify {
    struct timer_queue *timers;
    struct service_manager manager;
    struct timer retry;
    struct timer watchdog;
    usec_t watchdog_interval; /* between two signs of life; 0 = none */
};

/* `fd`, a non-blocking datagram socket to the service manager, is taken over, even after an error;
 * -1 = there is none. If $WATCHDOG_USEC asks for signs of life, a timer of `timers` sends one
 * immediately, since an earlier supervisor may have sent its last one long ago, and two per
 * interval; they stop when the loop hangs. 0 or -errno. */
int notify_init(struct notify *notify, struct timer_queue *timers, usec_t now, int fd);
void notify_deinit(struct notify *notify);

/* Returns whether there is a manager; if not, status lines are not needed. */
bool notify_wanted(const struct notify *notify);
/* Reports SERVICE_READY, SERVICE_RELOADING or SERVICE_STOPPING. */
void notify_tell(struct notify *notify, enum service_state state, usec_t now);
/* A sign of life outside the loop, if the manager asks for them. */
void notify_alive(struct notify *notify, usec_t now);
/* One line for `systemctl status`; the same text again is not sent. */
void notify_status(struct notify *notify, usec_t now, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

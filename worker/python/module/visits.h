/* SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>

/* Counts the visits of threads that collect results. Another thread can sleep as long as they come
 * often, without the GIL, for which they would otherwise have to wait. */
struct visits {
    _Atomic unsigned n;
};

void visits_init(struct visits *visits);
void visits_note(struct visits *visits);

/* Sleeps until no visit has begun for `period` ms: 0; or until `fd` is readable or a signal comes:
 * 1; or returns -errno. Needs no GIL. */
int visits_sleep(const struct visits *visits, int fd, int period);

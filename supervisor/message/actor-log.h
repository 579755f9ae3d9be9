/* SPDX-License-Identifier: MIT */
#pragma once

/* Rate-limited log lines about an actor (limited-log.h). */

#include "shared/base/log.h"

struct actor;

/*
 * Writes "NAME: …". Each `format`, a literal, is limited by itself: for each group and each
 * exchange, and for all clients together.
 */
void actor_log(const struct actor *actor, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

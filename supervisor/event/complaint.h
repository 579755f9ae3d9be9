/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Log lines about what a client or a worker did, and what came of it. Peers can cause them at will,
 * so they are limited: each kind, that is each format, for each group and exchange, and for all
 * clients together.
 */

#include "shared/base/log.h"

struct actor;
struct context;

/* "NAME: …". `format` is a literal. */
void complain(const struct actor *actor, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* About somebody who has no actor. */
void complain_outside(struct context *context, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* About a group, or a worker of it: neither is named in front. */
void complain_of_group(struct context *context, const char *group, enum log_level level,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Log lines about what a client or an actor did, or what befell it because of that. Anybody can
 * cause them at will, so they are few: each actor has its own share of them, clients outside have
 * one together.
 */

#include "../shared/log.h"

struct actor;
struct context;

/* In one second. */
#define COMPLAINTS_PER_ACTOR 5u
#define COMPLAINTS_OUTSIDE   20u

/* "NAME: …". */
void complain(struct actor *actor, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* About somebody who has no actor. */
void complain_outside(struct context *context, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* SPDX-License-Identifier: MIT */
#pragma once

#include "shared/base/log.h"
#include "supervisor/message/actor.h"

/*
 * Writes the line "NAME: …". Each `format`, a literal, has a rate limit (limited-log.h) for each
 * group, for each exchange, and for all clients together.
 */
void actor_log(const struct actor *actor, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Logs the fate of a message for an actor, with structured journal fields, if actor->log has the
 * bit `what`. `text` = why it was not handled; NULL = none.
 */
void actor_log_message(const struct actor *actor, enum actor_log what,
                       const struct protocol_message *message, const char *text);

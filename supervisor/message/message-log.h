/* SPDX-License-Identifier: MIT */
#pragma once

#include "shared/protocol/protocol-actors.h"
#include "supervisor/message/actor.h"

/*
 * Logs what became of a message for an actor, with structured journal fields, if actor->log has the
 * bit `what`. `text` = why it was not handled; NULL = nothing to add.
 */
void message_log(const struct actor *actor, enum actor_log what,
                 const struct protocol_message *message, const char *text);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Exchanges made at run time, and all subscriptions, across an upgrade. What waits in an exchange
 * is saved with the messages of the other actors. */

#include "supervisor/succession/record.h"

struct actor;
struct message_context;

#define EXCHANGE_ROW     "exchange"
#define SUBSCRIPTION_ROW "subscription"
extern const struct record EXCHANGE_RECORD;

/* Saves both of an actor that is an exchange, subscriptions in their order. Returns 0 or -errno of
 * the saver. */
int exchange_save(const struct actor *actor, struct saver *saver);

/*
 * In this order, once all other actors are there, and before their messages. As after a reload, the
 * configuration has the last word on an exchange that it declares, and an exchange whose name it
 * gives to a group is gone. They return 0, -EBADMSG, -ENOSPC (beyond a bound), or -ENOMEM.
 */
int exchange_restore_row(struct message_context *context, struct saved_reader *row);
int subscription_restore_row(struct message_context *context, struct saved_reader *row);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Types of io.troupe.Actors as JSON; see report.h. `key` NULL inside an array. */

#include "supervisor/control/access.h"
#include "supervisor/varlink/reply.h"

struct actor;
struct dead_letter;
struct exchange_subscription;
struct topic;

void report_actor(struct reply *reply, const char *key, const struct actor *actor);
void report_topic(struct reply *reply, const struct topic *topic); /* the members of an object */
void report_exchange(struct reply *reply, const struct actor *actor);
void report_subscription(struct reply *reply, const struct actor *exchange,
                         const struct exchange_subscription *subscription);
/* Whole: with payload and death reports, as far as there is room for them. */
void report_dead_letter(struct reply *reply, const char *key, const struct request *request,
                        const struct dead_letter *letter, bool whole);

/* SPDX-License-Identifier: MIT */
#pragma once

struct invocation;

/* Changes which messages are logged, according to --messages=. Returns an exit status. */
int message_log_switch(struct invocation *invocation, const char *target);

/* SPDX-License-Identifier: MIT */
#pragma once

struct invocation;

/* As --messages= says. An exit status. */
int message_log_switch(struct invocation *invocation, const char *target);

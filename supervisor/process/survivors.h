/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Processes that outlive a killed keeper. The kernel kills the workers then, but what these have
 * started only gets another parent. It is known by the session of a worker that has no cgroup, or,
 * in a session of its own, by a variable that workers pass on in their environment.
 */

#include <stddef.h>
#include <sys/types.h>

#define SURVIVORS_VARIABLE_MAX 64

/* Writes "TROUPE_MAIN=...", which no other keeper gives its workers. Empty without /proc. */
void survivors_variable(pid_t keeper, char ret[SURVIVORS_VARIABLE_MAX]);

/* Kills the processes of these sessions, which it sorts, and those with the variable, until no such
 * process is left, for a limited time. */
void survivors_kill(const char *variable, pid_t *sessions, size_t n_sessions);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Kills processes that outlive a killed keeper. The kernel kills the workers then, but their
 * descendants only get another parent. A descendant is recognised by the session of a worker
 * without a cgroup, or by a variable that workers pass on in their environment.
 */

#include <stddef.h>
#include <sys/types.h>

#define SURVIVORS_VARIABLE_MAX 64

/* Writes "TROUPE_MAIN=...", unique to this keeper, for the environment of its workers. Writes an
 * empty string without /proc. */
void survivors_variable(pid_t keeper, char ret[SURVIVORS_VARIABLE_MAX]);

/* Kills all processes that are in these sessions or have the variable ("" = none), until no such
 * process is left, for at most 2 seconds. Sorts `sessions`. If a process makes its environment
 * unreadable, SIGALRM ends the caller after 4 seconds. */
void survivors_kill(const char *variable, pid_t *sessions, size_t n_sessions);

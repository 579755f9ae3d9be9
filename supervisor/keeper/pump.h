/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A pump: a process that copies the output of a service from a pipe into the socket that the
 * supervisor reads. A program can open a pipe by name (/dev/stderr), but can also hold its lock;
 * a process that reads or closes the pipe then waits, and no signal interrupts it. So only the
 * service and its pump ever have the pipe: the service's process makes it before exec, and sends
 * the read end to the pump (spawn_options.pipe_output).
 *
 * The pump is a copy of the keeper without its descriptors and capabilities, outside the service's
 * cgroup. It ends when no process can write to the pipe, so the last output is not lost, or when
 * the supervisor has closed its end of the socket. It outlives supervisors, as the keeper holds
 * that end for the next one.
 *
 * The service can give the pipe to another process, which holds the lock. Then the pump cannot end,
 * and neither can those of the service's next processes. Once a group has some such pumps, no
 * further service of it is started.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The pumps of processes that have ended. Further ones are not counted. */
#define PUMPS_LEFT_MAX 512

/* Valid when zeroed. */
struct left_pumps {
    struct {
        pid_t pid;
        uint32_t owner; /* a number of its group */
        usec_t since;
    } at[PUMPS_LEFT_MAX];
    uint32_t n;
};

/* Returns whether a further pump may be started for this owner. */
bool left_pumps_permit(const struct left_pumps *left, uint32_t owner, usec_t now);
/* The process has ended whose output passes through this pump. */
void left_pumps_add(struct left_pumps *left, pid_t pid, uint32_t owner, usec_t now);
/* A child has ended, which may be such a pump. */
void left_pumps_remove(struct left_pumps *left, pid_t pid);

/* Starts a pump that writes to the socket `output`. `*ret_socket` is the caller's: the output of
 * the new process until that replaces it by the pipe. Returns the pid of a child, or -errno. */
pid_t pump_start(int output, int *ret_socket);

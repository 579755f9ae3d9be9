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
 */

#include <sys/types.h>

/* Starts a pump that writes to the socket `output`. `*ret_socket` is the caller's: the output of
 * the new process until that replaces it by the pipe. Returns the pid of a child, or -errno. */
pid_t pump_start(int output, int *ret_socket);

/* SPDX-License-Identifier: MIT */
#pragma once

/* The limits of a group that take effect through a cgroup controller, and which are without effect.
 */

#include <stdbool.h>
#include <stddef.h>

struct config_group;

#define CGROUP_CONTROLLERS 5u

/* Bit i stands for controller i. */
enum cgroup_controller {
    CGROUP_MEMORY = 1u << 0,
    CGROUP_PIDS = 1u << 1,
    CGROUP_CPU = 1u << 2,
    CGROUP_IO = 1u << 3,
    CGROUP_CPUSET = 1u << 4,
};

/* "memory", "pids" … for controller i. Static. */
const char *cgroup_controller_name(unsigned i);

/* The bits of the controllers in `text`, names separated by blanks as in cgroup.controllers. */
unsigned cgroup_controllers_of(const char *text);

/* The controllers of this machine, whether or not they are delegated to a supervisor. */
unsigned cgroup_machine_controllers(void);

#define CGROUP_LIMITS 9u

/* Suffices for the keys of all limits. */
#define CGROUP_UNMET_SIZE 128

/* Writes the keys of the limits that the group sets and whose controllers are not in `available`
 * (bits of cgroup_controller): "MemoryMax=, TasksMax=". Cut at `size`. Returns their number. */
size_t cgroup_unmet(unsigned available, const struct config_group *group, char *text, size_t size);

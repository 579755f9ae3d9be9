/* SPDX-License-Identifier: MIT */
#include "supervisor/config/cgroup-limits.h"

#include "shared/base/cleanup.h"
#include "supervisor/config/config.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const CONTROLLERS[CGROUP_CONTROLLERS] = {"memory", "pids", "cpu", "io",
                                                            "cpuset"};

const char *cgroup_controller_name(unsigned i)
{
    return CONTROLLERS[i];
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n) {
        bool begins = at == text || at[-1] == ' ';
        if (begins && (at[n] == ' ' || at[n] == '\n' || at[n] == '\0'))
            return true;
    }
    return false;
}

unsigned cgroup_controllers_of(const char *text)
{
    unsigned found = 0;

    for (unsigned i = 0; i < CGROUP_CONTROLLERS; i++)
        if (has_word(text, CONTROLLERS[i]))
            found |= 1u << i;
    return found;
}

unsigned cgroup_machine_controllers(void)
{
    _cleanup_close_ int fd = open("/sys/fs/cgroup/cgroup.controllers", O_RDONLY | O_CLOEXEC);
    char text[512];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (n < 0)
        return 0;
    text[n] = '\0';
    return cgroup_controllers_of(text);
}

static const struct limit {
    const char *key;
    size_t offset; /* of its value in struct config_group */
    enum cgroup_controller controller;
    bool is_text; /* char *, otherwise uint64_t */
} LIMITS[CGROUP_LIMITS] = {
    {"MemoryMax=", offsetof(struct config_group, memory_max), CGROUP_MEMORY, false},
    {"MemoryHigh=", offsetof(struct config_group, memory_high), CGROUP_MEMORY, false},
    {"MemorySwapMax=", offsetof(struct config_group, memory_swap_max), CGROUP_MEMORY, false},
    {"MemoryReclaimSec=", offsetof(struct config_group, memory_reclaim), CGROUP_MEMORY, false},
    {"CPUWeight=", offsetof(struct config_group, cpu_weight), CGROUP_CPU, false},
    {"CPUQuota=", offsetof(struct config_group, cpu_quota_percent), CGROUP_CPU, false},
    {"AllowedCPUs=", offsetof(struct config_group, allowed_cpus), CGROUP_CPUSET, true},
    {"IOWeight=", offsetof(struct config_group, io_weight), CGROUP_IO, false},
    {"TasksMax=", offsetof(struct config_group, tasks_max), CGROUP_PIDS, false},
};

static bool is_set(const struct limit *limit, const void *field)
{
    return limit->is_text ? *(char *const *)field != NULL
                          : *(const uint64_t *)field != CONFIG_UNSET;
}

size_t cgroup_unmet(unsigned available, const struct config_group *group, char *text, size_t size)
{
    size_t n = 0, used = 0;

    *text = '\0';
    for (unsigned i = 0; i < CGROUP_LIMITS; i++) {
        if (available & LIMITS[i].controller ||
            !is_set(&LIMITS[i], (const char *)group + LIMITS[i].offset))
            continue;
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", n > 0 ? ", " : "",
                                     LIMITS[i].key);
        n++;
    }
    return n;
}

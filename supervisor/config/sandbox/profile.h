/* SPDX-License-Identifier: MIT */
#pragma once

/* What Profile= stands for. */

#include "supervisor/config/config-group.h"

/* Sets the keys of the group's profile that no file has given. Returns 0 or -ENOMEM. */
int profile_apply(struct config_group *group);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Profile= stands for other keys of [Sandbox]. */

#include "supervisor/config/config-group.h"

/* Returns the value of Profile=; static. */
const char *profile_name(enum config_profile profile);

/* Sets the keys of the group's profile that no file has given; without a draft, that is all of
 * them. Returns 0 or -ENOMEM. */
int profile_apply(struct config_group *group);

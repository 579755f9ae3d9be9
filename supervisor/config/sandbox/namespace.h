/* SPDX-License-Identifier: MIT */
#pragma once

/* The storage for a namespace that the processes of a group share. */

#include "supervisor/keeper/sandbox-namespace.h"

/* Returns 0 or -errno. */
int namespace_new(struct sandbox_namespace **ret);
/* NULL allowed and returned. */
struct sandbox_namespace *namespace_free(struct sandbox_namespace *namespace);

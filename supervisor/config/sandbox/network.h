/* SPDX-License-Identifier: MIT */
#pragma once

/* The storage for the network of a group with PrivateNetwork=yes. */

#include "supervisor/keeper/sandbox-network.h"

/* Returns 0 or -errno. */
int network_new(struct sandbox_network **ret);
struct sandbox_network *
network_free(struct sandbox_network *network); /* NULL allowed and returned */

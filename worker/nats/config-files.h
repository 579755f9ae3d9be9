/* SPDX-License-Identifier: MIT */
#pragma once

/* The files that a configuration of troupe-nats names, and its own. */

#include "worker/nats/config.h"

/* Warns of a secret that everybody on this machine can read. NULL = no file. */
void config_warn_if_open(const char *path, const char *what);

/* Logs each file that cannot be read, and returns a negative errno if there is one. */
int config_check_files(const struct config *config);

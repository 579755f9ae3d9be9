/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal interface between the files types*.c. */

#include "supervisor/config/keys/types.h"

/* Sets the reason (static), and returns CONFIG_KEY_E_INVALID. */
int config_type_invalid(const char **ret_reason, const char *reason);
/* Converts a result of values.h. */
int config_type_check(int result, const char **ret_reason);
/* Splits a value into words. `command`: with the escapes of a command line. Returns 0, -ENOMEM, or
 * CONFIG_KEY_E_INVALID with a reason; strv_free() ends `*ret`. */
int config_type_split(const char *value, bool command, config_strv *ret, const char **ret_reason);

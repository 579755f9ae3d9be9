/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls while another call awaits its reply: over a connection of their own. */

#include <jansson.h>

struct invocation;

/*
 * Waits a second at most. Takes ownership of `parameters`. Returns the parameters of the reply, an
 * error's as well, or NULL without one. Prints nothing.
 */
json_t *aside_call(const struct invocation *invocation, const char *method, json_t *parameters);

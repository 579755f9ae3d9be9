/* SPDX-License-Identifier: MIT */
#pragma once

/* Other machines, with --cluster or --nats. They print errors and return an exit status.
 */

#include <stddef.h>

struct invocation;

/* As the verbs create and do. The payload is borrowed. */
int afar_create(struct invocation *invocation, const char *data, size_t size);
int afar_do(struct invocation *invocation, const char *data, size_t size);

/* As the verb status; in afar-status.c. */
int afar_status(struct invocation *invocation);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Dead letters of durable jobs, while they are still to be read from disk after a start. */

#include <stdbool.h>

struct request;

/* Whether the call has to wait for them. Then its method is called again once they have been read,
 * or cannot be; or an error has been sent. */
bool control_await_letters(struct request *request);

/* Why they are not known, for people. NULL = they have been read. Valid until the loop's next turn.
 */
const char *control_letters_problem(const struct request *request);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Finds what the parameters of calls name. Where a function returns false, an error has been sent.
 */

#include "supervisor/group/registry.h"
#include "supervisor/varlink/request.h"

/* Replies with NoSuchTarget and the nearest group's name if there is none. */
bool control_find_target(struct request *request, const char *target, struct registry_target *ret);

/* Like control_find_target(); a cell or worker may also be a former one. */
bool control_find_ever(struct request *request, const char *target);

/* As control_find_target(), but refuses workers. */
bool control_find_pool(struct request *request, const char *target, struct registry_target *ret);

/* Replies with NoSuchGroup and the nearest name. */
void control_refuse_group(struct request *request, const char *name);

/* The fields of TooManyCells. */
void control_report_cells(struct reply *reply, const struct group *group);

/* Replies with Stopping and returns true while the supervisor stops. */
bool control_refuse_stopping(struct request *request);

/* Logs which client asked for a change (of `target`; "" = everything): the events do not say. */
void control_log_change(const struct request *request, const char *target);

struct control_payload {
    const void *data; /* "" if there was none */
    size_t size;
    void *buffer; /* owned */
};

/* clang-format off */
#define CONTROL_PAYLOAD_NULL {.data = ""}
/* clang-format on */

/* Decodes the parameter "payload", borrowing from the call. */
bool control_take_payload(struct request *request, struct control_payload *ret);
void control_payload_deinit(struct control_payload *payload);

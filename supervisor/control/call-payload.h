/* SPDX-License-Identifier: MIT */
#pragma once

/* Decodes the Payload of a call. */

#include "supervisor/varlink/request.h"

struct control_payload {
    const void *data; /* "" if there was none */
    size_t size;
    void *buffer; /* owned */
};

/* clang-format off */
#define CONTROL_PAYLOAD_NULL {.data = ""}
/* clang-format on */

/* Decodes `object` (NULL = empty), borrowing from the call. On false, an error has been sent. */
bool control_take_payload(struct request *request, json_t *object, struct control_payload *ret);
void control_payload_deinit(struct control_payload *payload);

/* Allowed values of every time span; those below -1 are refused. */
#define CONTROL_USEC_ALLOWED "microseconds; 0 = the default, -1 = no limit"

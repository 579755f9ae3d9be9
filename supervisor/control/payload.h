/* SPDX-License-Identifier: MIT */
#pragma once

/* The Payload of a call's parameters, as bytes. */

#include "supervisor/varlink/request.h"

struct control_payload {
    const void *data; /* "" if there was none */
    size_t size;
    void *buffer; /* owned */
};

/* clang-format off */
#define CONTROL_PAYLOAD_NULL {.data = ""}
/* clang-format on */

/* `object` NULL = none was given. What is wrong is answered: false. Borrows from the call. */
bool control_take_payload(struct request *request, json_t *object, struct control_payload *ret);
void control_payload_deinit(struct control_payload *payload);

/* What any time span may be. */
#define CONTROL_USEC_ALLOWED "microseconds; 0 = the default, -1 = no limit"

/* Answers BadOption: false. */
bool control_refuse_option(struct request *request, const char *option, const char *allowed);

/* SPDX-License-Identifier: MIT */

#include "supervisor/control/call-payload.h"

#include "shared/base/base64.h"
#include "shared/base/cleanup.h"
#include <stdlib.h>

enum encoding {
    UTF8,
    BASE64,
};

struct payload_parameters {
    struct varlink_int encoding;
    struct varlink_bytes data;
};

static const struct varlink_parameter table[] = {
    VARLINK_ROW("encoding", CHOICE, payload_parameters, encoding, .required = true,
                .allowed = "utf8, base64"),
    VARLINK_ROW("data", BYTES, payload_parameters, data, .required = true),
    {0},
};

void control_payload_deinit(struct control_payload *payload)
{
    free(TAKE_PTR(payload->buffer));
}

static bool take_base64(struct request *request, const struct varlink_bytes *data,
                        struct control_payload *ret)
{
    _cleanup_free_ void *buffer = request_allocate(request, data->size / 4 * 3 + 1);

    if (!buffer)
        return false;
    if (base64_decode(buffer, &ret->size, data->data, data->size) < 0) {
        request_fail_string(request, "BadPayload", "problem",
                            "not base64 (RFC 4648, with padding, without line breaks)");
        return false;
    }
    ret->data = ret->buffer = TAKE_PTR(buffer);
    return true;
}

bool control_take_payload(struct request *request, json_t *object, struct control_payload *ret)
{
    struct payload_parameters given = {0};

    if (!object)
        return true;
    if (!request_take(request, object, table, &given))
        return false;
    if (given.encoding.value == BASE64)
        return take_base64(request, &given.data, ret);
    ret->data = given.data.data;
    ret->size = given.data.size;
    return true;
}

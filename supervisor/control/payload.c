/* SPDX-License-Identifier: MIT */

#include "supervisor/control/payload.h"

#include "shared/base/base64.h"
#include "shared/base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct payload_parameters {
    const char *encoding;
    struct varlink_bytes data;
};

static const struct varlink_parameter table[] = {
    {"encoding", VARLINK_STRING, true, offsetof(struct payload_parameters, encoding)},
    {"data", VARLINK_BYTES, true, offsetof(struct payload_parameters, data)},
    {0},
};

void control_payload_deinit(struct control_payload *payload)
{
    free(TAKE_PTR(payload->buffer));
}

static bool take_base64(struct request *request, const struct varlink_bytes *data,
                        struct control_payload *ret)
{
    _cleanup_free_ void *buffer = malloc(data->size / 4 * 3 + 1);

    if (!buffer) {
        request_internal(request, -ENOMEM);
        return false;
    }
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
    const char *bad = NULL;

    if (!object)
        return true;
    if (varlink_take(object, table, &given, &bad) != 0) {
        request_invalid(request, bad);
        return false;
    }
    if (strcmp(given.encoding, "base64") == 0)
        return take_base64(request, &given.data, ret);
    if (strcmp(given.encoding, "utf8") != 0)
        return control_refuse_option(request, "encoding", "utf8, base64");
    ret->data = given.data.data;
    ret->size = given.data.size;
    return true;
}

bool control_refuse_option(struct request *request, const char *option, const char *allowed)
{
    struct reply *reply = request_begin_error(request, "BadOption");

    reply_string(reply, "option", option);
    reply_string(reply, "allowed", allowed);
    request_end(request);
    return false;
}

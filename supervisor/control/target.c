/* SPDX-License-Identifier: MIT */

#include "supervisor/control/target.h"

#include "shared/base/base64.h"
#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/control/control-context.h"
#include "supervisor/group/group.h"
#include <stdlib.h>
#include <string.h>

static void refuse_target(struct request *request, const char *target)
{
    request_fail_strings(request, "NoSuchTarget", "target", target, "nearest",
                         registry_nearest(request->context->registry, target));
}

bool control_find_target(struct request *request, const char *target, struct registry_target *ret)
{
    if (registry_resolve(request->context->registry, target, ret) == 0)
        return true;
    refuse_target(request, target);
    return false;
}

bool control_find_ever(struct request *request, const char *target)
{
    struct registry_target found;

    if (registry_resolve_ever(request->context->registry, target, &found) == 0)
        return true;
    refuse_target(request, target);
    return false;
}

bool control_find_pool(struct request *request, const char *target, struct registry_target *ret)
{
    if (!control_find_target(request, target, ret))
        return false;
    if (!ret->slot)
        return true;
    request_refuse(request, "target", "a group or a cell; this is a worker");
    return false;
}

bool control_refuse_stopping(struct request *request)
{
    if (request->context->state != CONTROL_STOPPING)
        return false;
    request_fail(request, "Stopping");
    return true;
}

void control_report_cells(struct reply *reply, const struct group *group)
{
    reply_string(reply, "group", group->name);
    reply_uint(reply, "maximum", group->config->cells_max);
}

void control_refuse_group(struct request *request, const char *name)
{
    request_fail_strings(request, "NoSuchGroup", "group", name, "nearest",
                         registry_nearest(request->context->registry, name));
}

void control_log_change(const struct request *request, const char *target)
{
    const struct peer *peer = &request->connection->peer;

    log_info("%s%s%s asked for by process %d, uid %u", request->method->name, *target ? " " : "",
             target, (int)peer->pid, (unsigned)peer->uid);
}

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

bool control_take_payload(struct request *request, struct control_payload *ret)
{
    struct varlink_object payload;
    struct varlink_bytes data;

    if (!varlink_object(&request->parameters, "payload", &payload))
        return true;
    data = varlink_bytes(&payload, "data");
    if (strcmp(varlink_string(&payload, "encoding"), "base64") == 0)
        return take_base64(request, &data, ret);
    ret->data = data.data;
    ret->size = data.size;
    return true;
}

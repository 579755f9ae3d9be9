/* SPDX-License-Identifier: MIT */

#include "control-target.h"

#include "context.h"

bool control_find_target(struct request *request, const char *target, struct registry_target *ret)
{
    struct registry *registry = &request->context->registry;
    struct reply *reply;

    if (registry_resolve(registry, target, ret) == 0)
        return true;
    reply = request_begin_error(request, "NoSuchTarget");
    reply_string(reply, "target", target);
    reply_string_if(reply, "nearest", registry_nearest(registry, target));
    request_end(request);
    return false;
}

bool control_find_pool(struct request *request, const char *target, struct registry_target *ret)
{
    if (!control_find_target(request, target, ret))
        return false;
    if (!ret->slot)
        return true;
    request_invalid(request, "target");
    return false;
}

bool control_refuse_stopping(struct request *request)
{
    if (request->context->state != CONTEXT_STOPPING)
        return false;
    request_fail(request, "Stopping");
    return true;
}

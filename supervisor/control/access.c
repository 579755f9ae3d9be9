/* SPDX-License-Identifier: MIT */
#include "supervisor/control/access.h"

#include "supervisor/control/control-context.h"
#include "supervisor/event/event.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/varlink/request.h"
#include <stdio.h>

struct access access_of(const struct request *request)
{
    return (struct access){.context = request->context, .peer = &request->connection->peer};
}

static bool access_all(const struct access *access)
{
    const struct config_daemon *config = access->context->config;

    return peer_may_change(access->peer, config) ||
           (config->read_group && peer_is_member(access->peer, config->read_gid));
}

/* Root also stands for "no user", and may read everything anyway. */
static bool is_user(const struct access *access, uid_t uid)
{
    return uid != 0 && access->peer->uid == uid;
}

static bool owns_group(const struct access *access, const struct group *group)
{
    return group && group->config->user && is_user(access, group->config->uid);
}

bool access_group(const struct access *access, const struct group *group)
{
    return access_all(access) || owns_group(access, group);
}

bool access_job(const struct access *access, const struct job *job)
{
    return is_user(access, job->submitter_uid) || access_group(access, job->group);
}

bool access_death(const struct access *access, const struct death *death)
{
    return is_user(access, death->owner_uid) || is_user(access, death->submitter_uid) ||
           access_all(access);
}

bool access_event(const struct access *access, const struct event *event)
{
    const struct registry *registry = access->context->registry;

    return access_group(access, event->group ? registry_find(registry, event->group) : NULL);
}

bool access_letter(const struct access *access, const struct dead_letter *letter)
{
    return is_user(access, letter->submitter_uid) ||
           access_group(access, registry_group_of(access->context->registry, letter->recipient));
}

bool access_demand(struct request *request, const struct group *group, const char *why)
{
    const struct access access = access_of(request);
    const struct config_daemon *config = request->context->config;
    const char *user = group ? group->config->user : NULL;
    char changers[PEER_NEEDED_MAX], needed[PEER_NEEDED_MAX + 256];

    if (access_group(&access, group))
        return true;
    peer_describe_needed(changers, config);
    (void)snprintf(needed, sizeof(needed), "%s%s%.64s%s%s%.64s%s; %s", changers,
                   config->read_group ? ", a member of the group " : "",
                   config->read_group ? config->read_group : "",
                   config->read_group ? " (ReadGroup=)" : "", user ? ", or the user " : "",
                   user ? user : "", user ? " (User= of the group)" : "", why);
    request_fail_string(request, "NotPermitted", "needed", needed);
    return false;
}

bool access_demand_address(struct request *request, const char *address, const char *why)
{
    return access_demand(request, registry_group_of(request->context->registry, address), why);
}

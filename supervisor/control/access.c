/* SPDX-License-Identifier: MIT */
#include "supervisor/control/access.h"

#include "supervisor/config/syntax/strings.h"
#include "supervisor/control/control-context.h"
#include "supervisor/event/event.h"
#include "supervisor/group/group.h"
#include "supervisor/group/registry.h"
#include "supervisor/history/history.h"
#include "supervisor/message/dead-letter/dead-letter.h"
#include "supervisor/process/submit-socket.h"
#include "supervisor/varlink/request.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rights of a worker come from its socket alone. */
static bool is_worker(const struct request *request)
{
    return request->connection->peer.worker_of != NULL;
}

static bool reads_all(const struct request *request)
{
    const struct config_daemon *config = request->context->config;

    return peer_may_change(&request->connection->peer, config) ||
           (config->read_group && !is_worker(request) &&
            peer_is_member(&request->connection->peer, config->read_gid));
}

/* Root also stands for "no user", and may read everything anyway. */
static bool is_user(const struct request *request, uid_t uid)
{
    return uid != 0 && !is_worker(request) && request->connection->peer.uid == uid;
}

static bool owns_group(const struct request *request, const struct group *group)
{
    return group && group->config->user && is_user(request, group->config->uid);
}

bool access_group(const struct request *request, const struct group *group)
{
    return reads_all(request) || owns_group(request, group);
}

static bool is_worker_for(const struct request *request, const struct group *group)
{
    const char *name = request->connection->peer.worker_of;
    const struct group *own = name ? registry_find(request->context->registry, name) : NULL;

    return own && group && strings_has(&own->config->may_submit, group->config->name);
}

bool access_is_submitter(const struct request *request, const struct job *job)
{
    const uid_t uid = job->submitter_uid;

    return is_user(request, uid) ||
           (uid != 0 && request->connection->peer.uid == uid && is_worker_for(request, job->group));
}

/* Its submitter has let it wait for this job, and could read it. */
static bool is_worker_that_needs(const struct request *request, const struct job *job)
{
    const struct submit_socket *worker = request->connection->peer.worker;

    return worker && worker->options.needs(worker->options.userdata, job);
}

bool access_job(const struct request *request, const struct job *job)
{
    return access_is_submitter(request, job) || is_worker_that_needs(request, job) ||
           access_group(request, job->group);
}

bool access_death(const struct request *request, const struct death *death)
{
    return is_user(request, death->owner_uid) || is_user(request, death->submitter_uid) ||
           reads_all(request);
}

bool access_event(const struct request *request, const struct event *event)
{
    const struct registry *registry = request->context->registry;

    return access_group(request, event->group ? registry_find(registry, event->group) : NULL);
}

bool access_letter(const struct request *request, const struct dead_letter *letter)
{
    return is_user(request, letter->submitter_uid) ||
           access_group(request, registry_group_of(request->context->registry, letter->recipient));
}

int access_history(const struct request *request, struct history_reader *ret)
{
    const struct registry *registry = request->context->registry;
    const uid_t uid = request->connection->peer.uid;
    const struct group *group = NULL;
    size_t size;
    FILE *names = open_memstream(&ret->groups, &size);

    if (!names)
        return -ENOMEM;
    ret->all = reads_all(request);
    ret->uid = is_user(request, uid) ? uid : JOB_NOBODY;
    (void)fputs(" ", names);
    while (ret->uid != JOB_NOBODY && !ret->all &&
           (group = registry_next_of_user(registry, uid, group)))
        (void)fprintf(names, "%s ", group->name);
    return fclose(names) == 0 ? 0 : -ENOMEM;
}

static bool is_submitter_of(const struct request *request, const struct config_group *config)
{
    const struct peer *peer = &request->connection->peer;

    if (is_worker(request))
        return false;
    return (config->submit_user && peer->uid == config->submit_uid) ||
           (config->submit_group && peer_is_member(peer, config->submit_gid));
}

bool access_submit(const struct request *request, const struct group *group)
{
    return request->connection->account->may_change ||
           (group && !group->config->fault &&
            (is_submitter_of(request, group->config) || is_worker_for(request, group)));
}

bool access_cancel(const struct request *request, const struct job *job)
{
    return request->connection->account->may_change ||
           (access_is_submitter(request, job) && access_submit(request, job->group));
}

bool access_submits_somewhere(const struct request *request)
{
    const struct registry *registry = request->context->registry;

    if (request->connection->account->may_change)
        return true;
    for (size_t i = 0; i < registry->n_groups; i++)
        if (access_submit(request, registry->sorted[i]))
            return true;
    return false;
}

void access_refuse_submit(struct request *request, const struct group *group)
{
    const char *user = group ? group->config->submit_user : NULL;
    const char *members = group ? group->config->submit_group : NULL;
    char changers[PEER_NEEDED_MAX], needed[PEER_NEEDED_MAX + 256];

    if (is_worker(request)) {
        (void)snprintf(needed, sizeof(needed), "that MaySubmit= of the group %.64s names the group",
                       request->connection->peer.worker_of);
        request_fail_string(request, "NotPermitted", "needed", needed);
        return;
    }
    peer_describe_needed(changers, request->context->config);
    (void)snprintf(needed, sizeof(needed), "%s%s%.64s%s%s%.64s%s%s", changers,
                   user ? ", the user " : "", user ? user : "", user ? " (SubmitUser=)" : "",
                   members ? ", or a member of the group " : "", members ? members : "",
                   members ? " (SubmitGroup=)" : "",
                   user || members ? ""
                                   : "; SubmitUser= and SubmitGroup= of the group are not set");
    request_fail_string(request, "NotPermitted", "needed", needed);
}

bool access_demand(struct request *request, const struct group *group, const char *why)
{
    const struct config_daemon *config = request->context->config;
    const char *user = group ? group->config->user : NULL;
    char changers[PEER_NEEDED_MAX], needed[PEER_NEEDED_MAX + 256];

    if (access_group(request, group))
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

/* SPDX-License-Identifier: MIT */

/* io.troupe.Jobs.Attach: makes a client one of the rings. */

#include "supervisor/client/attachment.h"
#include "supervisor/control/access.h"
#include "supervisor/control/control-context.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/event/limited-log.h"
#include <errno.h>

/* Closes the connection of a client that broke the protocol of the rings. */
static void on_broken(void *userdata, const char *what)
{
    struct request *request = userdata;
    const struct peer *peer = &request->connection->peer;

    limited_log_write(request->log, NULL, LOG_LEVEL_WARNING,
                      "client %d (uid %u) broke the protocol: %s; it is cut off", (int)peer->pid,
                      (unsigned)peer->uid, what);
    connection_close(request->connection);
}

static bool may_read(void *userdata, const struct job *job)
{
    return access_job(userdata, job);
}

static bool may_submit(void *userdata, const struct group *group)
{
    return access_submit(userdata, group);
}

static void fail_version(struct request *request, int64_t version)
{
    struct reply *reply = request_begin_error(request, "BadVersion");

    reply_int(reply, "version", version);
    reply_int(reply, "supported", MEMORY_VERSION);
    request_end(request);
}

static int send_descriptors(struct request *request, const struct endpoint_fds *fds)
{
    const int all[] = {fds->channel.inbox, fds->channel.outbox, fds->control, fds->channel.wait_fd,
                       fds->channel.wake_fd};
    unsigned n = fds->channel.wake_fd >= 0 ? 5 : 4;
    struct reply *reply;

    reply = request_begin(request);
    reply_uint(reply, "descriptors", n);
    reply_string(reply, "address", attachment_address(request->attachment));
    return request_end_with_fds(request, all, n);
}

static struct attachment_options options_of(struct request *request)
{
    return (struct attachment_options){
        .uid = request->connection->peer.uid,
        .connection = request->connection->fd,
        .spin_usec = (uint32_t)request->context->config->spin,
        .blobs = request->connection->account->blobs,
        .may_read = may_read,
        .may_submit = may_submit,
        .broken = on_broken,
        .userdata = request,
        .passing = request->connection->peer.worker_of != NULL,
    };
}

int control_adopt_attachment(struct request *request, struct held *held)
{
    const struct attachment_options options = options_of(request);
    int r = attachment_adopt(&request->attachment, request->context->groups, &options, held);

    if (r < 0)
        return r;
    attachment_set_may_change(request->attachment, request->connection->account->may_change);
    connection_attach(request->connection);
    return 0;
}

/* Takes back the new rings if they use descriptors that are reserved for starting workers. */
static int spare_workers(struct request *request, struct endpoint_fds *fds)
{
    const int reserved = request->context->fds_for_clients;

    if (reserved == 0 || fds->control < reserved)
        return 0;
    attachment_sent(request->attachment, fds);
    request->attachment = attachment_free(request->attachment);
    return -EMFILE;
}

static void attach(struct request *request)
{
    const int64_t version = request_int(request, "version", 0);
    const struct attachment_options options = options_of(request);
    struct endpoint_fds fds;
    int r;

    if (!access_submits_somewhere(request)) {
        access_refuse_submit(request, NULL);
        return;
    }
    if (version != MEMORY_VERSION) {
        fail_version(request, version);
        return;
    }
    if (request->attachment) {
        request_fail(request, "AlreadyAttached");
        return;
    }
    r = attachment_new(&request->attachment, request->context->groups, &options, &fds);
    if (r == 0)
        r = spare_workers(request, &fds);
    if (r < 0) {
        request_internal(request, r);
        return;
    }
    attachment_set_may_change(request->attachment, request->connection->account->may_change);
    r = send_descriptors(request, &fds);
    attachment_sent(request->attachment, &fds);
    if (r < 0)
        request->attachment = attachment_free(request->attachment);
    else
        connection_attach(request->connection);
}

const struct request_method control_attach_methods[] = {
    {"Attach", attach, .changes = true, .submits = true, .begins = true},
    {0},
};

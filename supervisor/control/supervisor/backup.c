/* SPDX-License-Identifier: MIT */

/* io.troupe.Supervisor: Backup. */

#include "supervisor/control/control-context.h"
#include "supervisor/control/control.h"
#include "supervisor/control/interfaces.h"
#include "supervisor/control/target.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/store.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct backup_call {
    struct store_backup backup;
    struct request *request; /* NULL = the client is gone */
    char path[PATH_MAX];
};

static void answer(struct request *request, const struct store_backup *backup)
{
    struct reply *reply;

    if (backup->result < 0)
        return request_fail_string(request, "BackupFailed", "reason", backup->problem);
    reply = request_begin(request);
    reply_uint(reply, "size", backup->size);
    request_end(request);
}

static void on_done(struct store_backup *backup)
{
    struct backup_call *call = list_entry(backup, struct backup_call, backup);
    struct request *request = call->request;

    if (request) {
        request->drop = NULL;
        answer(request, backup);
    }
    free(call);
}

/* The backup goes on without the client. */
static void drop_backup(struct request *request)
{
    struct backup_call *call = request->state;

    call->request = NULL;
}

/* The supervisor writes the file, so members of AdminGroup= could make files anywhere. */
static bool may_back_up(struct request *request)
{
    const uid_t uid = request->connection->peer.uid;

    if (uid == 0 || uid == geteuid())
        return true;
    request_fail_string(request, "NotPermitted", "needed", "root, or the supervisor's user");
    return false;
}

struct backup_parameters {
    const char *path;
};

static void begin_backup(struct request *request)
{
    const struct backup_parameters *given = request->parameters;
    struct store *store = request->context->durable->store;
    struct backup_call *call;

    if (!may_back_up(request))
        return;
    if (given->path[0] != '/' || strlen(given->path) >= sizeof(call->path))
        return (void)request_refuse(request, "path", "an absolute path");
    if (!store)
        return request_fail(request, "NoStore");
    call = request_allocate(request, sizeof(*call));
    if (!call)
        return;
    (void)snprintf(call->path, sizeof(call->path), "%s", given->path);
    call->backup = (struct store_backup){.path = call->path, .done = on_done};
    call->request = request;
    if (store_begin_backup(store, &call->backup) == STORE_E_BUSY) {
        free(call);
        return request_fail(request, "BackupRunning");
    }
    control_log_change(request, given->path);
    request->state = call;
    request->drop = drop_backup;
}

static const struct varlink_parameter backup_table[] = {
    VARLINK_ROW("path", STRING, backup_parameters, path, .required = true),
    {0},
};

const struct request_method control_backup_methods[] = {
    {"Backup", begin_backup, backup_table, .changes = true, .begins = true},
    {0},
};

/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/attach.h"

#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/command/invocation.h"
#include <errno.h>
#include <string.h>

/* libtroupe only says that the group does not exist; the socket also suggests a similar name. */
static int explain_group(struct invocation *invocation, const char *group, int error)
{
    json_auto_t *reply = NULL;
    int r = call(invocation, CALL_SUPERVISOR "GetStatus", json_pack("{s:s}", "target", group),
                 false, &reply);

    return r == EXIT_OK ? explain_refused(group, error, "") : r;
}

int attach_group(struct invocation *invocation, const char *group, struct attachment_client *ret)
{
    struct troupe_client *client;
    int r = troupe_client_connect(&client, invocation_socket(invocation));

    if (r < 0)
        return explain_connect(invocation_socket(invocation), r);
    r = troupe_client_group(client, group, &ret->group);
    if (r < 0) {
        troupe_client_free(client);
        return r == -EPIPE ? explain_broken(r) : explain_group(invocation, group, r);
    }
    ret->client = client;
    return EXIT_OK;
}

struct troupe_job_options attach_job_options(const struct options *options)
{
    struct troupe_job_options job = options->job;

    job.key_size = job.key ? strlen(job.key) : 0;
    job.priority = (int)options->priority;
    return job;
}

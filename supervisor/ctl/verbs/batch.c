/* SPDX-License-Identifier: MIT */

/* The verb batch, and map --background: jobs that end together. */

#include "shared/base/reader.h"
#include "supervisor/ctl/call/attach.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static json_t *batch_parameters(const struct invocation *invocation, const char *group)
{
    const struct troupe_job_options *job = &invocation->options.job;

    return json_pack("{s:s, s:{s:s*, s:s*, s:s*}}", "group", group, "options", "id", job->id, "key",
                     (const char *)job->key, "tags", job->tags);
}

static void show_id(const struct invocation *invocation, const json_t *reply)
{
    terminal_print(&invocation->out, "%s", SAFE(field_text(reply, "id")));
}

static int close_batch(struct invocation *invocation, const char *id)
{
    return call_print(invocation, CALL_JOBS "CloseBatch", json_pack("{s:s}", "id", id), false,
                      NULL);
}

int verb_batch(struct invocation *invocation)
{
    const char *action = invocation_operand(invocation, 0);
    const char *operand = invocation_operand(invocation, 1);

    if (strcmp(action, "create") == 0)
        return call_print(invocation, CALL_JOBS "OpenBatch", batch_parameters(invocation, operand),
                          false, show_id);
    if (strcmp(action, "close") == 0)
        return close_batch(invocation, operand);
    complain("usage: troupectl batch create GROUP | close ID");
    return EXIT_USAGE;
}

/* ---- map --background ---- */

struct background {
    struct invocation *invocation;
    struct attachment_client attached;
    struct reconnect reconnect;
    struct attach_ids ids;
    uint64_t n; /* lines */
};

/* Becomes a member. The id makes a repetition harmless. */
static int add_line(struct background *background, const char *line, size_t size)
{
    char id[TROUPE_ID_SIZE];

    background->invocation->options.job.id =
        attach_ids_format(&background->ids, ++background->n, id);
    return submit_attached(background->invocation, &background->attached, &background->reconnect,
                           line, size, id);
}

static int add_lines(struct background *background)
{
    const char separator = background->invocation->options.null ? '\0' : '\n';
    struct reader reader = reader_make(STDIN_FILENO, separator, false, MAP_LINE_MAX);
    const char *line;
    size_t size;
    int status = EXIT_OK, r = 0;

    while (status == EXIT_OK &&
           (r = reader_next(&reader, clock_deadline(USEC_PER_SEC), &line, &size)) != READER_E_END) {
        if (r == 0)
            status = add_line(background, line, size);
        else if (r < 0 && r != -EINTR) {
            complain("cannot read line %" PRIu64 ": %s", background->n + 1, strerror(-r));
            status = EXIT_FAILED;
        }
    }
    reader_deinit(&reader);
    return status;
}

/* The batch is closed also if not all lines were accepted: those that were end it. */
int map_in_background(struct invocation *invocation)
{
    struct background background = {
        .invocation = invocation,
        .reconnect = reconnect_make(invocation, RECONNECT_DEFAULT),
        .ids = attach_ids_make(),
    };
    const char *group = invocation_operand(invocation, 0);
    char batch[TROUPE_ID_SIZE];
    int r, closed;

    invocation->options.job.id = attach_ids_format(&background.ids, 0, batch);
    r = call_print(invocation, CALL_JOBS "OpenBatch", batch_parameters(invocation, group), false,
                   show_id);
    if (r != EXIT_OK)
        return r;
    (void)fflush(stdout);
    invocation->options.job.batch = batch;
    if (invocation->options.job.wait_usec == 0)
        invocation->options.job.wait_usec = USEC_INFINITY;
    r = attach_group(invocation, group, &background.attached, &background.reconnect);
    if (r == EXIT_OK)
        r = add_lines(&background);
    troupe_client_free(background.attached.client);
    closed = close_batch(invocation, batch);
    return r != EXIT_OK ? r : closed;
}

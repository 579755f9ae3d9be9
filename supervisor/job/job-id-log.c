/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-id-log.h"

#include "shared/base/log.h"
#include "supervisor/job/job.h"
#include <inttypes.h>
#include <string.h>

#define PER_LINE (sizeof(((struct job_id_log *)0)->line) / PROTOCOL_ID_TEXT)

static void flush(struct job_id_log *ids, const char *group)
{
    if (ids->n_in_line == 0)
        return;
    log_write(LOG_LEVEL_WARNING, LOG_FIELDS({"TROUPE_GROUP", group}), "%s: %s:%s", group, ids->what,
              ids->line);
    ids->n_in_line = 0;
    ids->line[0] = '\0';
}

void job_id_log_add(struct job_id_log *ids, const char *group, const char *what,
                    const struct job *job)
{
    char id[PROTOCOL_ID_TEXT];

    ids->what = what;
    if (ids->n++ >= JOB_ID_LOG_MAX)
        return;
    strcat(ids->line, " ");
    strcat(ids->line, job_format_id(job, id));
    if (++ids->n_in_line == PER_LINE)
        flush(ids, group);
}

void job_id_log_end(struct job_id_log *ids, const char *group)
{
    flush(ids, group);
    if (ids->n > JOB_ID_LOG_MAX)
        log_write(LOG_LEVEL_WARNING, LOG_FIELDS({"TROUPE_GROUP", group}),
                  "%s: %s: %" PRIu64 " more", group, ids->what, ids->n - JOB_ID_LOG_MAX);
    *ids = (struct job_id_log){0};
}

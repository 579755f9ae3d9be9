/* SPDX-License-Identifier: MIT */

/* Says in a sentence what keeps a group, cell, worker or job from working. */

#include "supervisor/ctl/show/show.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"

#define COMMANDS "'troupectl deaths {target}', 'troupectl logs {target}'"
#define GIVEN_UP                                                                                   \
    "not restarted (Restart=, StartLimitBurst=, Strict=yes): 'troupectl reset {target}'"

/* Patterns of a Wait. Without a count, they are about the worker {target} itself. */
static const struct {
    const char *cause, *sentence;
    bool obstacle; /* as show_wait_is_obstacle() */
} sentences[] = {
    {"removed", "{target} was removed by a reload, and works off what it has", false},
    {"draining", "{target} is drained: no new job is accepted ('troupectl resume {target}')",
     false},
    {"safe_mode",
     "the supervisor crashed three times and is in safe mode: all groups are paused until "
     "'troupectl reload'",
     true},
    {"paused", "{target} is paused: 'troupectl resume {target}' ends the pause", true},
    {"fault", "{target} cannot start: {text}; after a correction, run 'troupectl reload'", true},
    {"store_opening", "{target} waits for the database: {text}", false},
    {"store_slow", "the store of {target}'s durable jobs has been stuck for seconds: {text}", true},
    {"store_full", "the disk of {target}'s durable jobs is full: {text}", true},
    {"store_failed", "the store of {target}'s durable jobs has failed: {text}", true},
    {"store_reading", "older jobs of {target} are being read from disk", false},
    {"after", "it starts after the group {target} (After=), which is not up yet", true},
    {"stopped",
     "{target} is stopped[{text=keep}, also after a restart of trouped]: 'troupectl start "
     "{target}' "
     "starts it",
     true},
    {"starting",
     "[{count>1:count} workers of {target} are|{count>0}a worker of {target} is|{target} is] "
     "starting and not ready yet",
     false},
    {"backoff",
     "[{count>1:count} workers of {target} died or did not start, the first"
     "|{count>0}a worker of {target} died or did not start, and"
     "|{target} died or did not start, and] is started again {until_at:until}: " COMMANDS,
     true},
    {"stopping",
     "[{count>1:count} workers of [{text=limit}groups that use the limit ]{target} are"
     "|{count>0}a worker of [{text=limit}a group that uses the limit ]{target} is|{target} is] "
     "stopping",
     false},
    {"failed",
     "[{count>1:count} workers of {target} have failed and are " GIVEN_UP " starts them again"
     "|[{count>0}a worker of ]{target} has failed and is " GIVEN_UP " starts it again]",
     true},
    {"trouble",
     "[{count>1:count} workers of {target} die or do|a worker of {target} dies or does] not get "
     "ready: 'troupectl status {target}'",
     false},
    {"busy",
     "[{count>1}all {count:count} workers of {target} that are up are"
     "|the only worker of {target} that is up is] busy",
     false},
    {"queue", "[{count>1:count} other jobs wait|another job waits] in the queue of {target}",
     false},
    {"cells_max",
     "{target} has as many cells as CellsMax= allows: {count:count}; keys without a cell are "
     "refused",
     false},
    {"queue_full",
     "the queue of {target} is full (QueueMax=, QueueMemoryMax=): "
     "[{count>1:count} senders wait|a sender waits] for room",
     false},
    {"unique", "job {target} has the same unique key, and ends first", false},
    {"dependency",
     "it waits for {count:count} of {text} job[{text=1}|s]: [{count>1}the first is ]{target}",
     false},
    {"batch_open", "the batch is open for more members: 'troupectl batch close {target}' closes it",
     false},
    {"members", "[{count>1:count} members of the batch have|a member of the batch has] not ended",
     false},
    {"rate",
     "[{text=key}the job's key|{text=limit}the limit {target}|{target}] has reached "
     "Rate=[{text=key} of {target}]: the next job may begin {until_at:until}",
     false},
    {"running_max",
     "[{text=unknown}held by the limit {target}, whose file was not read: 'troupectl reload'|"
     "held by [{text=limit}the limit {target}|Running= of {target}[{text=key}, for the job's "
     "key]]: "
     "{taken:count} of {count:count} units are taken]",
     false},
    {"key_limits",
     "[{count>1:count} jobs of {target} wait for limits of their keys|a job of {target} waits for "
     "a "
     "limit of its key] (RatePer=, RunningPer=)",
     false},
    {"limits_unread",
     "what 'troupectl limit' has set for {target} is not read from disk yet[: {text}]", false},
    {"cancelling", "its cancellation is requested, and {target} has not ended it yet", false},
    {"running", "nothing: {target} works on it", false},
    {"ending", "its worker {target} is being ended: {text}", false},
    {"handed_over", "{target} has it and has not begun it yet", false},
    {"unlimited", "it has no time limit (TimeoutSec=): 'troupectl cancel {target}' ends it", false},
    {"delayed", "it begins {until_at:until} at the earliest", false},
    {"retry",
     "[{count>1:count} attempts failed|its last attempt failed], and the next begins "
     "{until_at:until}",
     false},
    {"writing", "its end is being written to disk", false},
};

/* Returns ELEMENTS(sentences) for a cause of a newer supervisor. */
static size_t find(const json_t *wait)
{
    size_t i = 0;

    while (i < ELEMENTS(sentences) && !field_is(wait, "cause", sentences[i].cause))
        i++;
    return i;
}

char *show_wait(const json_t *wait)
{
    const size_t i = find(wait);

    return pattern_text(i < ELEMENTS(sentences) ? sentences[i].sentence : "{target}: {cause}", wait,
                        clock_realtime());
}

bool show_wait_is_obstacle(const json_t *wait)
{
    const size_t i = find(wait);

    return i < ELEMENTS(sentences) && sentences[i].obstacle;
}

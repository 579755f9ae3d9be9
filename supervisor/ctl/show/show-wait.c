/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/show/show-wait.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <string.h>

/* {target}, {count}, {text} and {until} stand for these members of a Wait. */
static const struct {
    const char *cause, *sentence;
    const char *plural; /* for a count other than 1; NULL = the same */
} sentences[] = {
    {"removed", "{target} was removed by a reload, and works off what it has", NULL},
    {"draining", "{target} is drained: no new job is accepted ('troupectl resume {target}')", NULL},
    {"safe_mode",
     "the supervisor crashed three times and is in safe mode: all groups are paused until "
     "'troupectl reload'",
     NULL},
    {"paused", "{target} is paused: 'troupectl resume {target}' goes on", NULL},
    {"fault", "{target} cannot start: {text}", NULL},
    {"store_opening", "the store of {target}'s durable jobs takes none yet: {text}", NULL},
    {"store_full", "the disk of {target}'s durable jobs is full: {text}", NULL},
    {"store_failed", "the store of {target}'s durable jobs has failed: {text}", NULL},
    {"store_reading", "older jobs of {target} are being read from disk", NULL},
    {"after", "it starts after the group {target} (After=), which is not up yet", NULL},
    {"stopped", "{target} is stopped: 'troupectl start {target}' starts it", NULL},
    {"starting", "a worker of {target} is starting and not ready yet",
     "{count} workers of {target} are starting and not ready yet"},
    {"backoff",
     "a worker of {target} died and is started again {until}: 'troupectl deaths {target}'",
     "{count} workers of {target} died, the first is started again {until}: 'troupectl deaths "
     "{target}'"},
    {"stopping", "a worker of {target} is stopping", "{count} workers of {target} are stopping"},
    {"failed",
     "a worker of {target} died too often and is given up (StartLimitBurst=): 'troupectl reset "
     "{target}'",
     "{count} workers of {target} died too often and are given up (StartLimitBurst=): 'troupectl "
     "reset {target}'"},
    {"trouble", "a worker of {target} dies or does not get ready: 'troupectl status {target}'",
     "{count} workers of {target} die or do not get ready: 'troupectl status {target}'"},
    {"busy", "the only worker of {target} that is up is busy",
     "all {count} workers of {target} that are up are busy"},
    {"queue", "another job waits in the queue of {target}, too",
     "{count} other jobs wait in the queue of {target}, too"},
    {"cells_max",
     "{target} has as many cells as CellsMax= allows: {count}; keys without a cell "
     "are refused",
     NULL},
    {"queue_full",
     "the queue of {target} is full (QueueMax=, QueueMemoryMax=): a sender waits for "
     "room",
     "the queue of {target} is full (QueueMax=, QueueMemoryMax=): {count} senders wait for room"},
    {"cancelling", "its cancellation is requested, and {target} has not ended it yet", NULL},
    {"running", "nothing: {target} works on it", NULL},
    {"handed_over", "{target} has it and has not begun it yet", NULL},
    {"delayed", "it was to begin {until} at the earliest", NULL},
    {"retry", "its last attempt failed, and the next begins {until}",
     "{count} attempts failed, and the next begins {until}"},
    {"writing", "its end is being written to disk", NULL},
};

static void print_until(FILE *file, usec_t until)
{
    const usec_t now = clock_realtime();

    if (until > now)
        fprintf(file, "in %s (%s)", SPAN(until - now), TIME(until));
    else
        fputs("now", file);
}

static void print_member(FILE *file, const json_t *wait, const char *name)
{
    if (strcmp(name, "until") == 0)
        print_until(file, field_usec(wait, "until_at"));
    else if (strcmp(name, "count") == 0)
        fputs(COUNT(field_count(wait, "count")), file);
    else
        fputs(SAFE(field_text(wait, name)), file);
}

static void print_sentence(FILE *file, const char *sentence, const json_t *wait)
{
    while (*sentence != '\0') {
        const size_t plain = strcspn(sentence, "{");
        char name[16];

        fwrite(sentence, 1, plain, file);
        sentence += plain;
        if (sscanf(sentence, "{%15[a-z]", name) < 1)
            break;
        print_member(file, wait, name);
        sentence = strchr(sentence, '}') + 1;
    }
}

void show_wait(FILE *file, const json_t *wait)
{
    for (size_t i = 0; i < ELEMENTS(sentences); i++) {
        if (!field_is(wait, "cause", sentences[i].cause))
            continue;
        print_sentence(file,
                       sentences[i].plural && field_count(wait, "count") > 1
                           ? sentences[i].plural
                           : sentences[i].sentence,
                       wait);
        fputc('\n', file);
        return;
    }
    fprintf(file, "%s: %s\n", SAFE(field_text(wait, "target")), SAFE(field_text(wait, "cause")));
}

bool show_wait_is_obstacle(const json_t *wait)
{
    static const char *const obstacles[] = {
        "safe_mode", "paused",  "fault",   "store_full", "store_failed",
        "after",     "stopped", "backoff", "failed",
    };

    for (size_t i = 0; i < ELEMENTS(obstacles); i++)
        if (field_is(wait, "cause", obstacles[i]))
            return true;
    return false;
}

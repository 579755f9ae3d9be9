/* SPDX-License-Identifier: MIT */

/* Says in a sentence what keeps a group, cell, worker or job from working. */

#include "supervisor/ctl/show/show.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <string.h>

/* {target}, {count}, {text} and {until} stand for these members of a Wait. */
static const struct {
    const char *cause, *sentence;
    const char *plural; /* for a count above 1; NULL = the same */
    const char *worker; /* without a count, of the worker {target} itself; NULL = the same */
    bool obstacle;      /* as show_wait_is_obstacle() */
} sentences[] = {
    {"removed", .sentence = "{target} was removed by a reload, and works off what it has"},
    {"draining",
     .sentence = "{target} is drained: no new job is accepted ('troupectl resume {target}')"},
    {"safe_mode", .obstacle = true,
     .sentence = "the supervisor crashed three times and is in safe mode: all groups "
                 "are paused until 'troupectl reload'"},
    {"paused", .obstacle = true,
     .sentence = "{target} is paused: 'troupectl resume {target}' ends the pause"},
    {"fault", .obstacle = true, .sentence = "{target} cannot start: {text}"},
    {"store_opening", .sentence = "the store of {target}'s durable jobs takes none yet: {text}"},
    {"store_slow", .obstacle = true,
     .sentence = "the store of {target}'s durable jobs waits for seconds: {text}"},
    {"store_full", .obstacle = true,
     .sentence = "the disk of {target}'s durable jobs is full: {text}"},
    {"store_failed", .obstacle = true,
     .sentence = "the store of {target}'s durable jobs has failed: {text}"},
    {"store_reading", .sentence = "older jobs of {target} are being read from disk"},
    {"after", .obstacle = true,
     .sentence = "it starts after the group {target} (After=), which is not up yet"},
    {"stopped", .obstacle = true,
     .sentence = "{target} is stopped: 'troupectl start {target}' starts it"},
    {"starting", .sentence = "a worker of {target} is starting and not ready yet",
     .plural = "{count} workers of {target} are starting and not ready yet",
     .worker = "{target} is starting and not ready yet"},
    {"backoff", .obstacle = true,
     .sentence = "a worker of {target} died or did not start, and is started again {until}: "
                 "'troupectl deaths {target}', 'troupectl logs {target}'",
     .plural = "{count} workers of {target} died or did not start, the first is started again "
               "{until}: 'troupectl deaths {target}', 'troupectl logs {target}'",
     .worker = "{target} died or did not start, and is started again {until}: 'troupectl deaths "
               "{target}', 'troupectl logs {target}'"},
    {"stopping", .sentence = "a worker of {target} is stopping",
     .plural = "{count} workers of {target} are stopping", .worker = "{target} is stopping"},
    {"failed", .obstacle = true,
     .sentence =
         "a worker of {target} has failed and is not restarted (Restart=, StartLimitBurst=, "
         "Strict=yes): 'troupectl reset {target}' starts it again",
     .plural = "{count} workers of {target} have failed and are not restarted (Restart=, "
               "StartLimitBurst=, Strict=yes): 'troupectl reset {target}' starts them again",
     .worker = "{target} has failed and is not restarted (Restart=, StartLimitBurst=, Strict=yes): "
               "'troupectl reset {target}' starts it again"},
    {"trouble",
     .sentence = "a worker of {target} dies or does not get ready: 'troupectl status {target}'",
     .plural = "{count} workers of {target} die or do not get ready: 'troupectl status {target}'"},
    {"busy", .sentence = "the only worker of {target} that is up is busy",
     .plural = "all {count} workers of {target} that are up are busy"},
    {"queue", .sentence = "another job waits in the queue of {target}, too",
     .plural = "{count} other jobs wait in the queue of {target}, too"},
    {"cells_max", .sentence = "{target} has as many cells as CellsMax= allows: {count}; keys "
                              "without a cell are refused"},
    {"queue_full",
     .sentence =
         "the queue of {target} is full (QueueMax=, QueueMemoryMax=): a sender waits for room",
     .plural = "the queue of {target} is full (QueueMax=, QueueMemoryMax=): {count} senders wait "
               "for room"},
    {"cancelling", .sentence = "its cancellation is requested, and {target} has not ended it yet"},
    {"running", .sentence = "nothing: {target} works on it"},
    {"ending", .sentence = "{target}, which has it, is being ended: {text}"},
    {"handed_over", .sentence = "{target} has it and has not begun it yet"},
    {"unlimited",
     .sentence = "it has no time limit (TimeoutSec=): 'troupectl cancel {target}' ends it"},
    {"delayed", .sentence = "it was to begin {until} at the earliest"},
    {"retry", .sentence = "its last attempt failed, and the next begins {until}",
     .plural = "{count} attempts failed, and the next begins {until}"},
    {"writing", .sentence = "its end is being written to disk"},
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

static const char *sentence_of(size_t i, uint64_t count)
{
    if (sentences[i].plural && count > 1)
        return sentences[i].plural;
    return sentences[i].worker && count == 0 ? sentences[i].worker : sentences[i].sentence;
}

/* Returns ELEMENTS(sentences) for a cause of a newer supervisor. */
static size_t find(const json_t *wait)
{
    size_t i = 0;

    while (i < ELEMENTS(sentences) && !field_is(wait, "cause", sentences[i].cause))
        i++;
    return i;
}

void show_wait(FILE *file, const json_t *wait)
{
    const size_t i = find(wait);

    if (i < ELEMENTS(sentences))
        print_sentence(file, sentence_of(i, field_count(wait, "count")), wait);
    else
        fprintf(file, "%s: %s", SAFE(field_text(wait, "target")), SAFE(field_text(wait, "cause")));
    fputc('\n', file);
}

bool show_wait_is_obstacle(const json_t *wait)
{
    const size_t i = find(wait);

    return i < ELEMENTS(sentences) && sentences[i].obstacle;
}

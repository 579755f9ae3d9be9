/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/verbs/journal.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/text/format.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-journal.h>

#define MATCH_MAX 512

__attribute__((format(printf, 2, 3))) static int match(sd_journal *journal, const char *format, ...)
{
    char text[MATCH_MAX];
    va_list arguments;
    int n;

    va_start(arguments, format);
    n = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return n < 0 || n >= (int)sizeof(text) ? -ENAMETOOLONG
                                           : sd_journal_add_match(journal, text, (size_t)n);
}

/* The user of a process; -1 = unknown. */
static long long user_of(long long pid)
{
    char path[48], line[256];
    long long uid = -1;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%lld/status", pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "Uid: %lld", &uid) == 1)
            break;
    if (file)
        fclose(file);
    return uid;
}

/* "group" has the fields of its workers' lines, "group/x" those of a worker, or of a cell's. */
static int match_target(sd_journal *journal, const char *target)
{
    const int group = (int)strcspn(target, "/");
    int r = match(journal, "SYSLOG_IDENTIFIER=%.*s", group, target);

    if (r >= 0)
        r = match(journal, "TROUPE_GROUP=%.*s", group, target);
    if (r < 0 || target[group] == '\0')
        return r;
    r = sd_journal_add_conjunction(journal);
    if (r >= 0)
        r = match(journal, "TROUPE_WORKER=%s", target);
    if (r >= 0)
        r = sd_journal_add_disjunction(journal);
    return r < 0 ? r : match(journal, "TROUPE_KEY=%s", target + group + 1);
}

static int match_source(sd_journal *journal, const struct journal_source *source)
{
    const long long uid = user_of(source->supervisor);
    int r = uid < 0 ? -ESRCH : match(journal, "_UID=%lld", uid);

    if (r >= 0)
        r = sd_journal_add_conjunction(journal);
    if (r < 0)
        return r;
    return source->target ? match_target(journal, source->target)
                          : match(journal, "TROUPE_JOB=%s", source->job);
}

int journal_open(const struct journal_source *source, struct sd_journal **ret)
{
    sd_journal *journal;
    int r = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);

    if (r < 0)
        return r;
    r = match_source(journal, source);
    if (r < 0) {
        sd_journal_close(journal);
        return r;
    }
    *ret = journal;
    return 0;
}

void journal_close(struct sd_journal *journal)
{
    sd_journal_close(journal);
}

void journal_go_back(struct sd_journal *journal, size_t limit)
{
    (void)sd_journal_seek_tail(journal);
    /* One more: journal_next_lines() begins behind the present entry. */
    if (sd_journal_previous_skip(journal, limit + 1) < (int)limit + 1)
        (void)sd_journal_seek_head(journal);
}

/* A field's value; "" if the entry lacks it. Valid until the next call. */
static const char *field(sd_journal *journal, const char *name, size_t *ret_size)
{
    const size_t prefix = strlen(name) + 1;
    const void *data;
    size_t size;

    *ret_size = 0;
    if (sd_journal_get_data(journal, name, &data, &size) < 0 || size < prefix)
        return "";
    *ret_size = size - prefix;
    return (const char *)data + prefix;
}

/* The supervisor's own entries are not a worker's output. */
static bool is_output(sd_journal *journal)
{
    char identifier[MATCH_MAX];
    size_t size;
    const char *text = field(journal, "SYSLOG_IDENTIFIER", &size);

    (void)snprintf(identifier, sizeof(identifier), "%.*s", (int)size, text);
    text = field(journal, "TROUPE_GROUP", &size);
    return size == strlen(identifier) && memcmp(text, identifier, size) == 0;
}

static int add_line(sd_journal *journal, bool names_worker, json_t *lines)
{
    _cleanup_free_ char *worker = NULL;
    size_t size;
    const char *text = field(journal, "TROUPE_WORKER", &size);
    json_t *line;

    worker = names_worker ? strndup(text, size) : NULL;
    text = field(journal, "MESSAGE", &size);
    line = json_sprintf("%s%s%.*s", worker ? worker : "", worker ? ": " : "", (int)size, text);
    return line && json_array_append_new(lines, line) == 0 ? 0 : -ENOMEM;
}

int journal_next_lines(struct sd_journal *journal, bool names_workers, json_t *lines)
{
    int r;

    while ((r = sd_journal_next(journal)) > 0) {
        if (!is_output(journal))
            continue;
        r = add_line(journal, names_workers, lines);
        if (r < 0)
            break;
    }
    return r;
}

int journal_wait(struct sd_journal *journal)
{
    int r = sd_journal_wait(journal, (uint64_t)-1);

    return r < 0 ? r : 0;
}

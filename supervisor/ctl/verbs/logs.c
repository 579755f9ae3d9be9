/* SPDX-License-Identifier: MIT */

/* The verb logs: the output of workers and jobs, and the switch of the message log. */

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/verbs/journal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const WORDS[] = {"enqueued", "dispatched", "unhandled"};

/* Whether `word` comes first in the comma-separated `*list`; then moves behind it. */
static bool takes_away(const char **list, const char *word)
{
    const size_t size = strlen(word);

    if (strncmp(*list, word, size) != 0 || ((*list)[size] != ',' && (*list)[size] != '\0'))
        return false;
    *list += size + ((*list)[size] == ',');
    return true;
}

static bool parse(const char *list, bool on[ELEMENTS(WORDS)])
{
    if (strcmp(list, "none") == 0)
        return true;
    if (strcmp(list, "all") == 0)
        list = "enqueued,dispatched,unhandled";
    if (*list == '\0')
        return false;
    while (*list != '\0') {
        size_t i = 0;

        while (i < ELEMENTS(WORDS) && !takes_away(&list, WORDS[i]))
            i++;
        if (i == ELEMENTS(WORDS))
            return false;
        on[i] = true;
    }
    return true;
}

/* Changes which messages of the target are logged, as --messages says. */
static int switch_messages(struct invocation *invocation, const char *target)
{
    bool on[ELEMENTS(WORDS)] = {false};

    if (!parse(invocation->options.messages, on)) {
        complain("--messages=%s: unknown; allowed: enqueued, dispatched, unhandled (separated by "
                 "commas), all, none",
                 invocation->options.messages);
        return EXIT_USAGE;
    }
    return call_print(invocation, CALL_ACTORS "SetMessageLog",
                      json_pack("{s:s, s:b, s:b, s:b}", "target", target, WORDS[0], on[0], WORDS[1],
                                on[1], WORDS[2], on[2]),
                      false, NULL);
}

/* As the supervisor escapes those of its log. */
static void print_line(const char *line)
{
    const size_t size = strlen(line);
    _cleanup_free_ char *text = malloc(UTF8_ESCAPED_MAX(size));

    if (!text) {
        complain("out of memory");
        return;
    }
    (void)utf8_escape(text, UTF8_ESCAPED_MAX(size), line, size);
    puts(text);
}

static void show_lines(const struct invocation *invocation, const json_t *reply)
{
    const json_t *lines = json_object_get(reply, "lines");

    (void)invocation;
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const char *line = json_string_value(json_array_get(lines, i));

        print_line(line ? line : "");
    }
}

static int follow_lines(struct invocation *invocation, const json_t *parameters, bool last,
                        void *userdata)
{
    int r = output_reply(invocation, parameters, show_lines);

    (void)last;
    reconnect_done(userdata);
    return r == EXIT_OK && fflush(stdout) != 0 ? EXIT_FAILED : r;
}

/* Whose lines are shown. */
struct source {
    const char *member; /* of GetLog: "target" or "job" */
    const char *name;
};

static int follow_once(struct invocation *invocation, struct reconnect *reconnect, void *userdata)
{
    const struct source *source = userdata;

    return call_more(invocation, CALL_SUPERVISOR "GetLog",
                     json_pack("{s:s, s:b}", source->member, source->name, "follow", true), true,
                     follow_lines, reconnect);
}

static bool is_named(const struct varlink_reply *reply, const char *error)
{
    return reply->error && strcmp(reply->error, error) == 0;
}

/*
 * Finds out what the operand names: a group, cell or worker, else a job. Returns an exit status.
 */
static int find_source(struct invocation *invocation, struct source *ret)
{
    struct varlink_reply reply;
    int r;

    *ret = (struct source){"job", invocation_operand(invocation, 0)};
    r = call_any(invocation, CALL_SUPERVISOR "GetStatus", json_pack("{s:s}", "target", ret->name),
                 false, &reply);
    if (r != EXIT_OK)
        return r;
    if (!reply.error)
        ret->member = "target";
    else if (!is_named(&reply, CALL_SUPERVISOR "NoSuchTarget") || strchr(ret->name, '/'))
        r = explain_error(reply.error, reply.parameters);
    varlink_reply_deinit(&reply);
    return r;
}

/* A job without lines may have written nothing, or it may not exist. */
static int explain_silence(struct invocation *invocation, const char *id)
{
    struct varlink_reply reply;
    int r = call_any(invocation, CALL_JOBS "Get", json_pack("{s:s}", "id", id), false, &reply);

    if (r != EXIT_OK)
        return r;
    if (reply.error)
        r = explain_error(reply.error, reply.parameters);
    else if (!invocation->options.quiet && !invocation->options.json)
        complain("no output of job '%s' is kept", id);
    varlink_reply_deinit(&reply);
    return r;
}

/* Whether the job has not ended. */
static bool is_live(struct invocation *invocation, const char *id)
{
    struct varlink_reply reply;
    bool live;

    if (call_any(invocation, CALL_JOBS "Get", json_pack("{s:s}", "id", id), false, &reply) !=
        EXIT_OK)
        return false;
    live = !reply.error && !field_has(json_object_get(reply.parameters, "job"), "ended_at");
    varlink_reply_deinit(&reply);
    return live;
}

static int show_source(struct invocation *invocation, const struct source *source)
{
    json_auto_t *reply = NULL;
    int r = call(invocation, CALL_SUPERVISOR "GetLog",
                 json_pack("{s:s}", source->member, source->name), false, &reply);

    if (r != EXIT_OK)
        return r;
    if (strcmp(source->member, "job") == 0 &&
        json_array_size(json_object_get(reply, "lines")) == 0) {
        r = explain_silence(invocation, source->name);
        if (r != EXIT_OK)
            return r;
    }
    return output_reply(invocation, reply, show_lines);
}

/* ---- from the journal ---- */

/* Without --limit. */
#define JOURNAL_LINES 1000

/* Whether the operand names several workers, so that lines tell whose they are. */
static bool names_workers(const struct source *source)
{
    const char *slash = strrchr(source->name, '/');

    return strcmp(source->member, "target") == 0 &&
           (!slash || strspn(slash + 1, "0123456789") != strlen(slash + 1));
}

/* Opens the journal if the supervisor's output goes there, and this user may read it. */
static struct sd_journal *open_journal(struct invocation *invocation, const struct source *source)
{
    struct journal_source what = {0};
    struct sd_journal *journal;
    json_auto_t *info = NULL;

    if (call(invocation, CALL_SUPERVISOR "GetInfo", json_object(), false, &info) != EXIT_OK ||
        !field_true(info, "journal"))
        return NULL;
    if (strcmp(source->member, "job") == 0)
        what.job = source->name;
    else
        what.target = source->name;
    what.supervisor = field_int(info, "supervisor_pid");
    return journal_open(&what, &journal) < 0 ? NULL : journal;
}

static int print_journal(struct invocation *invocation, struct sd_journal *journal,
                         const struct source *source, size_t *ret_n)
{
    json_auto_t *reply = json_pack("{s:[]}", "lines");
    json_t *lines = json_object_get(reply, "lines");
    int r = reply ? journal_next_lines(journal, names_workers(source), lines) : -ENOMEM;

    if (r < 0) {
        complain("the journal cannot be read: %s", strerror(-r));
        return EXIT_FAILED;
    }
    *ret_n = json_array_size(lines);
    if (*ret_n == 0)
        return EXIT_OK;
    r = output_reply(invocation, reply, show_lines);
    return r == EXIT_OK && fflush(stdout) != 0 ? EXIT_FAILED : r;
}

/* Shows the lines of the journal, with --follow for ever. Sets `*ret_n` to 0 if there was none. */
static int show_journal(struct invocation *invocation, struct sd_journal *journal,
                        const struct source *source, size_t *ret_n)
{
    const struct options *options = &invocation->options;
    size_t n;
    int r;

    journal_go_back(journal, options->limit > 0 ? (size_t)options->limit : JOURNAL_LINES);
    r = print_journal(invocation, journal, source, ret_n);
    while (r == EXIT_OK && options->follow && *ret_n > 0) {
        r = journal_wait(journal) < 0 ? EXIT_FAILED : EXIT_OK;
        if (r == EXIT_OK)
            r = print_journal(invocation, journal, source, &n);
    }
    return r;
}

/* Returns whether the journal had lines. One that has none may be another user's. */
static bool try_journal(struct invocation *invocation, const struct source *source, int *ret)
{
    struct sd_journal *journal = open_journal(invocation, source);
    size_t n = 0;

    if (!journal)
        return false;
    invocation->lines = invocation->options.follow;
    *ret = show_journal(invocation, journal, source, &n);
    journal_close(journal);
    return n > 0 || *ret != EXIT_OK;
}

int verb_logs(struct invocation *invocation)
{
    struct source source;
    bool follows, kept;
    int r;

    if (invocation->options.messages)
        return switch_messages(invocation, invocation_operand(invocation, 0));
    r = find_source(invocation, &source);
    if (r != EXIT_OK)
        return r;
    kept = false;
    follows = invocation->options.follow;
    if (follows && strcmp(source.member, "job") == 0) {
        /* The journal does not know when the job ends, and gets its last lines later. */
        follows = is_live(invocation, source.name);
        kept = follows;
        invocation->options.follow = follows;
    }
    if (!kept && try_journal(invocation, &source, &r))
        return r;
    if (!follows)
        return show_source(invocation, &source);
    invocation->lines = true;
    return reconnect_run(invocation, USEC_INFINITY, follow_once, &source);
}

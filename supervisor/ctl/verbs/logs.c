/* SPDX-License-Identifier: MIT */

/* The verb logs: the output of workers and jobs, and the switch of the message log. */

#include "shared/base/cleanup.h"
#include "shared/base/utf8.h"
#include "supervisor/caller/varlink-client.h"
#include "supervisor/ctl/call/call.h"
#include "supervisor/ctl/call/explain.h"
#include "supervisor/ctl/call/reconnect.h"
#include "supervisor/ctl/command/invocation.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/terminal.h"
#include "supervisor/ctl/verbs/verbs.h"
#include <stdlib.h>
#include <string.h>

static const char *const WORDS[] = {"enqueued", "dispatched", "unhandled"};

static bool parse(const char *list, bool on[ELEMENTS(WORDS)])
{
    const bool all = strcmp(list, "all") == 0;
    _cleanup_free_ char *copy = strdup(all ? "enqueued,dispatched,unhandled" : list);
    char *rest = copy;

    if (strcmp(list, "none") == 0)
        return true;
    while (rest && (rest == copy || *rest != '\0')) {
        const char *word = strsep(&rest, ",");
        size_t i = 0;

        while (i < ELEMENTS(WORDS) && strcmp(word, WORDS[i]) != 0)
            i++;
        if (i == ELEMENTS(WORDS))
            return false;
        on[i] = true;
    }
    return copy;
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

    for (size_t i = 0; i < json_array_size(lines); i++) {
        const char *line = json_string_value(json_array_get(lines, i));

        print_line(line ? line : "");
    }
}

static int follow_lines(struct invocation *invocation, const json_t *parameters, bool last,
                        void *userdata)
{
    int r = output_reply(invocation, parameters, show_lines);

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
    else if (!varlink_reply_is(&reply, CALL_SUPERVISOR "NoSuchTarget") || strchr(ret->name, '/'))
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

int verb_logs(struct invocation *invocation)
{
    struct source source;
    int r;

    if (invocation->options.messages)
        return switch_messages(invocation, invocation_operand(invocation, 0));
    r = find_source(invocation, &source);
    if (r != EXIT_OK)
        return r;
    if (!invocation->options.follow ||
        (strcmp(source.member, "job") == 0 && !is_live(invocation, source.name)))
        return show_source(invocation, &source);
    invocation->lines = true;
    return reconnect_run(invocation, USEC_INFINITY, follow_once, &source);
}

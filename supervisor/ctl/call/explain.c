/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/call/explain.h"

#include "shared/base/cleanup.h"
#include "supervisor/ctl/call/explain-private.h"
#include "supervisor/ctl/command/exit-status.h"
#include "supervisor/ctl/text/complain.h"
#include "supervisor/ctl/text/field.h"
#include "supervisor/ctl/text/format.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int no_target(const json_t *p)
{
    const char *target = field_text(p, "target");

    if (field_has(p, "nearest"))
        complain_nearest(field_text(p, "nearest"), "there is no group, cell or worker '%s'",
                         target);
    else
        complain("there is no group, cell or worker '%s'; 'troupectl status' lists them", target);
    return EXIT_NOT_FOUND;
}

static int no_group(const json_t *p)
{
    const char *group = field_text(p, "group");

    if (field_has(p, "nearest"))
        complain_nearest(field_text(p, "nearest"), "there is no group '%s'", group);
    else
        complain("there is no group '%s'; 'troupectl status' lists them", group);
    return EXIT_NOT_FOUND;
}

static int no_job(const json_t *p)
{
    complain("there is no job '%s' (any more): it never was, or its result is no longer kept",
             field_text(p, "id"));
    return EXIT_NOT_FOUND;
}

static int not_permitted(const json_t *p)
{
    complain("not permitted: this needs %s", field_text(p, "needed"));
    return EXIT_NOT_PERMITTED;
}

static int bad_size(const json_t *p)
{
    complain("a pool of %lld workers is not possible; allowed: %lld to %lld",
             (long long)field_int(p, "size"), (long long)field_int(p, "minimum"),
             (long long)field_int(p, "maximum"));
    return EXIT_USAGE;
}

static int bad_configuration(const json_t *p)
{
    const json_t *problems = json_object_get(p, "problems");

    for (size_t i = 0; i < json_array_size(problems); i++) {
        const char *problem = json_string_value(json_array_get(problems, i));

        fprintf(stderr, "%s\n", SAFE_LINE(problem ? problem : ""));
    }
    complain("the configuration has %zu problem%s; nothing was changed", json_array_size(problems),
             plural(json_array_size(problems)));
    return EXIT_INVALID;
}

static int stopping(const json_t *p)
{
    (void)p;
    complain("the supervisor is stopping and takes no orders any more");
    return EXIT_BUSY;
}

static int not_an_actor(const json_t *p)
{
    complain("group '%s' is a plain service (Type=service): it has no queue and takes no jobs",
             field_text(p, "group"));
    return EXIT_FAILED;
}

static int busy(const json_t *p)
{
    complain("the queue of group '%s' is full: %s of %s jobs (QueueMax=, QueueMemoryMax=)",
             field_text(p, "group"), COUNT(field_count(p, "queued")),
             COUNT(field_count(p, "maximum")));
    return EXIT_BUSY;
}

static int too_many_cells(const json_t *p)
{
    complain("group '%s' has as many cells as it may have, %s: none for another key (CellsMax=)",
             field_text(p, "group"), COUNT(field_count(p, "maximum")));
    return EXIT_BUSY;
}

static int name_exists(const json_t *p)
{
    complain("'%s' exists: groups, exchanges and actors' names share one name space",
             field_text(p, "name"));
    return EXIT_BUSY;
}

static int job_exists(const json_t *p)
{
    complain("a job '%s' exists: it is live, or its result is still kept", field_text(p, "id"));
    return EXIT_BUSY;
}

static int bad_id(const json_t *p)
{
    complain("'%s' cannot be a job's id; allowed: %s", field_text(p, "id"),
             field_text(p, "allowed"));
    return EXIT_USAGE;
}

static int bad_option(const json_t *p)
{
    complain("'%s' is missing or wrong; allowed: %s", field_text(p, "option"),
             field_text(p, "allowed"));
    return EXIT_USAGE;
}

static int bad_payload(const json_t *p)
{
    complain("the supervisor refused the payload: %s", field_text(p, "problem"));
    return EXIT_USAGE;
}

static int cancel_again(const json_t *p)
{
    complain("cancellation of job '%s' has already been requested", field_text(p, "id"));
    return EXIT_BUSY;
}

static int already_ended(const json_t *p)
{
    complain("job '%s' has already ended: %s", field_text(p, "id"), field_text(p, "state"));
    return EXIT_FAILED;
}

static int not_reached(const json_t *p)
{
    complain("%s did not get there: %s; see 'troupectl status' and 'troupectl deaths'",
             field_text(p, "target"), field_text(p, "state"));
    return EXIT_FAILED;
}

/* Errors of all io.troupe interfaces; equal names mean the same. */
static const struct explanation explanations[] = {
    {"NoSuchTarget", no_target},
    {"NoSuchGroup", no_group},
    {"NoSuchJob", no_job},
    {"NotPermitted", not_permitted},
    {"BadSize", bad_size},
    {"BadConfiguration", bad_configuration},
    {"Stopping", stopping},
    {"NotAnActor", not_an_actor},
    {"Busy", busy},
    {"TooManyCells", too_many_cells},
    {"JobExists", job_exists},
    {"NameExists", name_exists},
    {"BadId", bad_id},
    {"BadOption", bad_option},
    {"BadPayload", bad_payload},
    {"CancelAlreadyRequested", cancel_again},
    {"AlreadyEnded", already_ended},
    {"NotReached", not_reached},
};

/* Turns "QueueTooLong" into "queue too long". */
static void name_to_words(const char *name, char *words, size_t size)
{
    size_t used = 0;

    for (; *name != '\0' && used + 3 < size; name++) {
        bool upper = *name >= 'A' && *name <= 'Z';

        if (upper && used > 0)
            words[used++] = ' ';
        words[used++] = upper ? (char)(*name - 'A' + 'a') : *name;
    }
    words[used] = '\0';
}

/* Prints members that are strings or numbers: "group a, maximum 5". */
static void write_parameters(FILE *file, const json_t *parameters)
{
    const char *separator = ": ", *key;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)parameters, key, value)
    {
        if (json_is_string(value))
            fprintf(file, "%s%s %s", separator, key, json_string_value(value));
        else if (json_is_integer(value))
            fprintf(file, "%s%s %lld", separator, key, (long long)json_integer_value(value));
        else
            continue;
        separator = ", ";
    }
}

/* An unknown error, of a newer supervisor. */
static int explain_unknown(const char *name, const json_t *parameters)
{
    _cleanup_free_ char *text = NULL;
    char words[128];
    size_t size;
    FILE *file = open_memstream(&text, &size);

    if (file) {
        write_parameters(file, parameters);
        if (fclose(file) != 0)
            text = NULL;
    }
    name_to_words(name, words, sizeof(words));
    complain("the supervisor refused: %s%s", words, text ? text : "");
    return EXIT_FAILED;
}

static const struct explanation *find_explanation(const char *error)
{
    const struct {
        const char *interface;
        const struct explanation *items;
        size_t n_items;
    } tables[] = {
        {"io.troupe.", explanations, ELEMENTS(explanations)},
        {"io.troupe.", explain_connection, n_explain_connection},
        {"io.troupe.", explain_actors, n_explain_actors},
        {"org.varlink.service.", explain_service, n_explain_service},
    };
    const char *name = strrchr(error, '.');

    for (size_t i = 0; name && i < ELEMENTS(tables); i++)
        for (size_t k = 0; k < tables[i].n_items; k++)
            if (strncmp(error, tables[i].interface, strlen(tables[i].interface)) == 0 &&
                strcmp(name + 1, tables[i].items[k].name) == 0)
                return &tables[i].items[k];
    return NULL;
}

int explain_error(const char *error, const json_t *parameters)
{
    const struct explanation *explanation = find_explanation(error);
    const char *name = strrchr(error, '.');

    if (explanation)
        return explanation->explain(parameters);
    return explain_unknown(name ? name + 1 : error, parameters);
}

#define IS_IT_RUNNING "; is trouped running? See 'systemctl status trouped'"

int explain_connect(const char *socket, int error)
{
    switch (error) {
    case -ENOENT:
        complain("no supervisor at %s: there is no such socket" IS_IT_RUNNING, socket);
        return EXIT_UNREACHABLE;
    case -ECONNREFUSED:
        complain("no supervisor at %s: nobody listens there any more" IS_IT_RUNNING, socket);
        return EXIT_UNREACHABLE;
    case -EACCES:
        complain("not permitted to open %s (its mode and its directory's say who may)", socket);
        return EXIT_NOT_PERMITTED;
    case -EPERM:
        complain("not permitted: creating jobs needs root, the supervisor's user or AdminGroup=");
        return EXIT_NOT_PERMITTED;
    case -EUSERS:
        complain("the supervisor has as many clients as it takes (ClientsMax=)");
        return EXIT_BUSY;
    case -EAGAIN:
        complain("the supervisor is short of memory or descriptors (LimitNOFILE=), try again");
        return EXIT_BUSY;
    case -ESHUTDOWN:
        return stopping(NULL);
    case -EPROTO:
        complain("what answers at %s is no trouped, or one of another version", socket);
        return EXIT_UNREACHABLE;
    default:
        complain("cannot connect to %s: %s", socket, strerror(-error));
        return EXIT_UNREACHABLE;
    }
}

int explain_broken(int error)
{
    switch (error) {
    case -ECONNRESET:
    case -EPIPE:
        complain("the connection was closed by the supervisor, or the supervisor is gone");
        break;
    case -ETIMEDOUT:
        complain("no answer in time: the supervisor is busy, or hangs (--timeout waits longer)");
        return EXIT_TIMEOUT;
    case -EPROTO:
        complain("what came back is not the Varlink protocol: no trouped at this socket?");
        break;
    case -EMSGSIZE:
        complain("the request is larger than the supervisor takes (1 MiB)");
        return EXIT_USAGE;
    case -ENOMEM:
        complain("out of memory");
        return EXIT_FAILED;
    default:
        complain("the connection to the supervisor failed: %s", strerror(-error));
        break;
    }
    return EXIT_UNREACHABLE;
}

/* SPDX-License-Identifier: MIT */
/* Shows and forgets the machines that take jobs from NATS. */
#include "worker/nats/client.h"

#include "shared/base/base64.h"
#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "worker/nats/report.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define KEY_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

#define UP      "up"
#define STOPPED "stopped"
#define DEAD    "dead"

/* Other machines have written this: it must not reach a terminal. */
static const char *name_of(const char *text)
{
    return text && text[strspn(text, KEY_CHARACTERS)] == '\0' ? text : "?";
}

static const char *text_of(const json_t *object, const char *member)
{
    return name_of(json_string_value(json_object_get(object, member)));
}

static bool is(const json_t *object, const char *member, const char *value)
{
    return strcmp(text_of(object, member), value) == 0;
}

static int64_t number_of(const json_t *object, const char *member)
{
    return json_integer_value(json_object_get(object, member));
}

/* ---- reading the bucket ---- */

/* Returns the value of a key; NULL = this program has not written it. Members may be missing, as in
 * another version, but have their types. */
static json_t *read_value(const char *base64)
{
    const size_t length = strlen(base64);
    _cleanup_free_ char *text = malloc(length + 1);
    const json_t *version, *groups;
    json_auto_t *value = NULL;
    size_t size;

    if (text && base64_decode(text, &size, base64, length) == 0)
        value = json_loadb(text, size, 0, NULL);
    version = json_object_get(value, "version");
    groups = json_object_get(value, "groups");
    if (!json_is_object(value) || (version && !json_is_string(version)) ||
        (groups && !json_is_array(groups)))
        return NULL;
    return TAKE_PTR(value);
}

static usec_t read_time(const char *text)
{
    struct tm time = {0};

    return text && strptime(text, "%Y-%m-%dT%H:%M:%S", &time) ? (usec_t)timegm(&time) * USEC_PER_SEC
                                                              : 0;
}

/* Returns the machine, after adding it in the order of names if it is new; NULL without memory. */
static json_t *machine_of(json_t *machines, const char *name)
{
    size_t i = 0;

    while (i < json_array_size(machines) &&
           strcmp(text_of(json_array_get(machines, i), "name"), name) < 0)
        i++;
    if (!is(json_array_get(machines, i), "name", name) &&
        json_array_insert_new(machines, i, json_pack("{s:s, s:{}}", "name", name, "bridges")) < 0)
        return NULL;
    return json_array_get(machines, i);
}

static const char *state_of(const json_t *value, usec_t at, usec_t now)
{
    const int64_t every = number_of(value, "every_usec");
    const usec_t period = every > 0 ? (usec_t)every : 0;

    if (!is(value, "state", UP))
        return STOPPED;
    return usec_sub(now, at + USEC_PER_SEC) / BUCKET_PERIODS > period ? DEAD
                                                                      : UP; /* `at` is rounded */
}

static int copy_member(json_t *machine, const json_t *value, const char *name)
{
    json_t *member = json_object_get(value, name);

    return member ? json_object_set(machine, name, member) : 0;
}

/* A machine is up if one of its bridges is, and has the groups that the last one of these has
 * described. Otherwise it has the state of the bridge that was heard from last. Returns 0, or -1
 * without memory. */
static int add_bridge(json_t *machine, const char *group, const json_t *value, usec_t at,
                      usec_t now)
{
    const char *state = state_of(value, at, now);

    if (json_object_set_new(machine, "seen_at", json_integer((json_int_t)at)) < 0 ||
        json_object_set_new(json_object_get(machine, "bridges"), group, json_string(state)) < 0)
        return -1;
    if (strcmp(state, UP) != 0 && is(machine, "state", UP))
        return 0;
    if (json_object_set_new(machine, "state", json_string(state)) < 0)
        return -1;
    if (strcmp(state, UP) != 0)
        return 0;
    return copy_member(machine, value, "version") < 0 ? -1 : copy_member(machine, value, "groups");
}

/* Adds what a message of the bucket's stream says. One without data marks a key that was
 * deleted. */
static int add_message(json_t *machines, const json_t *message, usec_t now)
{
    const char *subject = json_string_value(json_object_get(message, "subject"));
    const char *data = json_string_value(json_object_get(message, "data"));
    _cleanup_free_ char *key = NULL;
    json_auto_t *value = NULL;
    char *dot;

    if (!data || !subject || strlen(subject) < strlen(BUCKET_SUBJECT))
        return 0;
    key = strdup(subject + strlen(BUCKET_SUBJECT));
    if (!key)
        return -1;
    value = read_value(data);
    dot = strrchr(key, '.'); /* the name of a machine may contain dots, that of a group not */
    if (!dot || name_of(key) != key || !value) {
        log_warning("bucket " BUCKET_NAME ": the key %s is no machine's, and is left out", key);
        return 0;
    }
    *dot = '\0';
    return add_bridge(machine_of(machines, key), dot + 1, value,
                      read_time(json_string_value(json_object_get(message, "time"))), now);
}

/* An answer without a message: the end of the bucket, or why there is none. */
static int end_bucket(const struct client *client, const json_t *reply)
{
    switch (client_error_code(reply)) {
    case JSNoMessageFoundErr:
        return CLIENT_OK;
    case JSStreamNotFoundErr:
        log_error("there is no bucket " BUCKET_NAME ": \"troupe-nats setup\" makes it");
        return CLIENT_NOT_FOUND;
    default:
        return client_fail(client, BUCKET_NAME, NATS_PROTOCOL_ERROR);
    }
}

/* Adds each key of the bucket, in the order in which they were written. */
static int read_bucket(const struct client *client, json_t *machines)
{
    json_auto_t *info = NULL;
    json_int_t sequence = 0;
    natsStatus s = client_ask(client, "$JS.API.STREAM.INFO." BUCKET_STREAM, "", &info);
    /* The time of the server, since clocks of machines may differ; nats-server 2.9 does not tell
     * it. */
    usec_t now = read_time(json_string_value(json_object_get(info, "ts")));

    now = now > 0 ? now : clock_realtime();
    while (s == NATS_OK) {
        json_auto_t *reply = NULL;
        const json_t *message;

        s = client_find_message(client, BUCKET_STREAM, BUCKET_SUBJECT ">", sequence + 1, &reply);
        message = json_object_get(reply, "message");
        if (s == NATS_OK && number_of(message, "seq") <= sequence)
            return end_bucket(client, reply);
        sequence = number_of(message, "seq");
        if (s == NATS_OK && add_message(machines, message, now) < 0)
            s = NATS_NO_MEMORY;
    }
    return client_fail(client, BUCKET_NAME, s);
}

/* ---- the table ---- */

/* The sums of a table, and the widths of its first columns. */
struct summary {
    int64_t up, stopped, dead; /* machines */
    int64_t workers, workers_up, queued, running;
    bool trouble; /* a machine is dead, or a group is not up, or its troupe-nats is dead */
    int machine_width, group_width;
};

static void widen(int *width, const char *text)
{
    const int length = (int)strlen(text);

    *width = length > *width ? length : *width;
}

static void sum_group(struct summary *sums, const json_t *bridges, const json_t *group)
{
    const char *name = text_of(group, "name");

    widen(&sums->group_width, name);
    sums->workers += number_of(group, "size");
    sums->workers_up += number_of(group, "up");
    sums->queued += number_of(group, "queued");
    sums->running += number_of(group, "running");
    sums->trouble |= (!is(group, "state", "running") && !is(group, "state", "paused")) ||
                     is(bridges, name, "dead");
}

static struct summary sum_up(const json_t *machines)
{
    struct summary sums = {.machine_width = sizeof("Machine") - 1,
                           .group_width = sizeof("Group") - 1};

    for (size_t i = 0; i < json_array_size(machines); i++) {
        const json_t *machine = json_array_get(machines, i);
        const json_t *groups = json_object_get(machine, "groups");
        json_t *bridges = json_object_get(machine, "bridges"), *bridge;
        const char *name;

        widen(&sums.machine_width, text_of(machine, "name"));
        sums.up += is(machine, "state", "up");
        sums.dead += is(machine, "state", "dead");
        sums.stopped += is(machine, "state", "stopped");
        json_object_foreach(bridges, name, bridge) widen(&sums.group_width, name_of(name));
        for (size_t k = 0; k < json_array_size(groups); k++)
            sum_group(&sums, bridges, json_array_get(groups, k));
    }
    sums.trouble |= sums.dead > 0;
    return sums;
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_sums(const struct summary *sums)
{
    const int64_t machines = sums->up + sums->stopped + sums->dead;

    printf("%" PRId64 " machine%s: %" PRId64 " up", machines, plural(machines), sums->up);
    if (sums->stopped > 0)
        printf(", %" PRId64 " stopped", sums->stopped);
    if (sums->dead > 0)
        printf(", %" PRId64 " dead", sums->dead);
    printf("; %" PRId64 " of %" PRId64 " worker%s up, %" PRId64 " job%s queued, %" PRId64
           " running\n\n",
           sums->workers_up, sums->workers, plural(sums->workers), sums->queued,
           plural(sums->queued), sums->running);
}

/* "12s", "3min", "5h". */
static const char *span(char text[static 32], usec_t time)
{
    const uint64_t seconds = time / USEC_PER_SEC;
    const uint64_t unit = seconds < 120 ? 1 : seconds < 7200 ? 60 : 3600;

    (void)snprintf(text, 32, "%" PRIu64 "%s", seconds / unit,
                   unit == 1    ? "s"
                   : unit == 60 ? "min"
                                : "h");
    return text;
}

/* Says whether jobs come to the group from NATS. */
static const char *remark(const json_t *bridges, const char *group)
{
    if (!json_object_get(bridges, group))
        return "local jobs only";
    return is(bridges, group, "dead")      ? "its troupe-nats is dead"
           : is(bridges, group, "stopped") ? "its troupe-nats is stopped"
                                           : "";
}

static void print_group(const struct summary *sums, const char *machine, const json_t *bridges,
                        const json_t *group)
{
    const int64_t oldest = number_of(group, "oldest_usec");
    char workers[48], age[32] = "";

    (void)snprintf(workers, sizeof(workers), "%" PRId64 " of %" PRId64, number_of(group, "up"),
                   number_of(group, "size"));
    printf("%-*s  %-*s  %-12s %12s", sums->machine_width, machine, sums->group_width,
           text_of(group, "name"), text_of(group, "state"), workers);
    if (is(group, "type", "service")) {
        puts("");
        return;
    }
    if (oldest > 0)
        (void)span(age, (usec_t)oldest);
    printf("  %7" PRId64 "  %7" PRId64 "  %6s  %s\n", number_of(group, "queued"),
           number_of(group, "running"), age, remark(bridges, text_of(group, "name")));
}

/* About a machine that is not up, only the time and its bridges are known. */
static void print_absent(const struct summary *sums, const json_t *machine)
{
    const usec_t now = clock_realtime(), seen = (usec_t)number_of(machine, "seen_at");
    json_t *bridge;
    const char *group;
    char age[32];

    json_object_foreach(json_object_get(machine, "bridges"), group, bridge)
        printf("%-*s  %-*s  %-12s  last seen %s ago\n", sums->machine_width,
               text_of(machine, "name"), sums->group_width, name_of(group),
               text_of(machine, "state"), span(age, now > seen ? now - seen : 0));
}

/* Prints the table, unless it is empty. */
static void print_machines(const json_t *machines, const struct summary *sums)
{
    if (json_array_size(machines) == 0) {
        puts("No machine has reported yet.");
        return;
    }
    print_sums(sums);
    printf("%-*s  %-*s  %-12s %12s  %7s  %7s  %6s\n", sums->machine_width, "Machine",
           sums->group_width, "Group", "State", "Workers", "Queued", "Running", "Oldest");
    for (size_t i = 0; i < json_array_size(machines); i++) {
        const json_t *machine = json_array_get(machines, i);
        const json_t *groups = json_object_get(machine, "groups");

        if (!is(machine, "state", UP))
            print_absent(sums, machine);
        for (size_t k = 0; k < json_array_size(groups); k++)
            print_group(sums, k == 0 ? text_of(machine, "name") : "",
                        json_object_get(machine, "bridges"), json_array_get(groups, k));
    }
    if (sums->dead > 0)
        puts("\nA dead machine is listed for 7 days, or until 'troupe-nats forget MACHINE'.");
}

int cluster_show(const struct config *config, bool json)
{
    json_auto_t *machines = json_array();
    struct client client;
    struct summary sums;
    int r = client_open(&client, config);

    if (r == CLIENT_OK)
        r = read_bucket(&client, machines);
    client_close(&client);
    if (r != CLIENT_OK)
        return r;
    sums = sum_up(machines);
    if (!json)
        print_machines(machines, &sums);
    r = client_finish(json ? json_pack("{s:O}", "machines", machines) : NULL);
    return r == CLIENT_OK && sums.trouble ? CLIENT_FAILED : r;
}

/* ---- forgetting one ---- */

/* Returns why it cannot be forgotten, or CLIENT_OK. */
static int check_known(const json_t *machines, const char *name)
{
    for (size_t i = 0; i < json_array_size(machines); i++) {
        const json_t *machine = json_array_get(machines, i);

        if (!is(machine, "name", name))
            continue;
        if (!is(machine, "state", UP))
            return CLIENT_OK;
        log_error("machine %s is up, and would be listed again within seconds", name);
        return CLIENT_FAILED;
    }
    log_error("no machine %s is known", name);
    return CLIENT_NOT_FOUND;
}

static int purge(const struct client *client, const char *machine)
{
    char subject[128];
    jsOptions options;
    natsStatus s;

    (void)snprintf(subject, sizeof(subject), BUCKET_SUBJECT "%s.*", machine);
    (void)jsOptions_Init(&options);
    options.Wait = CLIENT_WAIT_MS;
    options.Stream.Purge.Subject = subject;
    s = js_PurgeStream(client->js, BUCKET_STREAM, &options, NULL);
    return s == NATS_OK ? CLIENT_OK : client_fail(client, machine, s);
}

int cluster_forget(const struct config *config, const char *machine)
{
    json_auto_t *machines = json_array();
    struct client client;
    int r = client_open(&client, config);

    if (r == CLIENT_OK)
        r = read_bucket(&client, machines);
    if (r == CLIENT_OK)
        r = check_known(machines, machine);
    if (r == CLIENT_OK)
        r = purge(&client, machine);
    client_close(&client);
    return r;
}

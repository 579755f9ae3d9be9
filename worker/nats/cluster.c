/* SPDX-License-Identifier: MIT */
#include "worker/nats/cluster.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "worker/nats/bucket.h"
#include "worker/nats/cluster-table.h"
#include <stdio.h>
#include <string.h>

#define KEY_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-."

#define UP      "up"
#define STOPPED "stopped"
#define DEAD    "dead"

/* What is known of a machine while entries are read, besides what is shown of it. */
#define REVISION "revision"

static bool is(const json_t *object, const char *name, const char *text)
{
    const char *value = json_string_value(json_object_get(object, name));

    return value && strcmp(value, text) == 0;
}

/* ---- entries ---- */

struct entry {
    char *machine; /* owned */
    const char *group;
    json_t *value; /* owned */
    uint64_t revision;
    usec_t at;
};

static void entry_deinit(struct entry *entry)
{
    free(entry->machine);
    json_decref(entry->value);
}

/* What this program writes. JSON could not hold other bytes. */
static bool is_key(const char *key)
{
    return key[strspn(key, KEY_CHARACTERS)] == '\0';
}

static void leave_out(const char *bucket, const char *key)
{
    _cleanup_free_ char *text = malloc(4 * strlen(key) + 1);
    char *end = text;

    for (; text && *key != '\0'; key++)
        end += sprintf(end, *key > ' ' && *key < 0x7f ? "%c" : "\\x%02x", (unsigned char)*key);
    log_warning("bucket %s: the key %s is no machine's, and is left out", bucket,
                text ? text : "(out of memory)");
}

/* Members may be missing, as in another version, but have their types. */
static bool is_report(const json_t *value)
{
    const json_t *version = json_object_get(value, "version");
    const json_t *groups = json_object_get(value, "groups");

    return json_is_object(value) && (!version || json_is_string(version)) &&
           (!groups || json_is_array(groups));
}

/* A name may contain dots, a group not. Returns false for what this program has not written. */
static bool entry_init(struct entry *entry, kvEntry *from)
{
    const char *value = kvEntry_Value(from);
    char *dot;

    *entry = (struct entry){
        .machine = strdup(kvEntry_Key(from)),
        .value = value ? json_loadb(value, (size_t)kvEntry_ValueLen(from), 0, NULL) : NULL,
        .revision = kvEntry_Revision(from),
        .at = (usec_t)kvEntry_Created(from) / NSEC_PER_USEC,
    };
    dot = entry->machine ? strrchr(entry->machine, '.') : NULL;
    if (!dot || !is_key(entry->machine) || !is_report(entry->value)) {
        entry_deinit(entry);
        return false;
    }
    *dot = '\0';
    entry->group = dot + 1;
    return true;
}

typedef int (*entry_fn)(json_t *machines, const struct entry *entry);

static int add_entry(json_t *machines, kvEntry *from, entry_fn add)
{
    struct entry entry;
    int r;

    if (!entry_init(&entry, from)) {
        leave_out(kvEntry_Bucket(from), kvEntry_Key(from));
        return 0;
    }
    r = add(machines, &entry);
    entry_deinit(&entry);
    return r;
}

/* Sets *ret, which is NULL, to the next entry, or leaves it so at the end. libnats takes an entry
 * without a value that has the header "Status: 503" for the answer that nobody is there, and drops
 * it; if that was the last one, no end comes. */
static natsStatus next_entry(kvEntry **ret, kvWatcher *watcher, const char *bucket)
{
    bool was_dropped = false;
    natsStatus s;

    while ((s = kvWatcher_Next(ret, watcher, CLIENT_WAIT_MS)) == NATS_NO_RESPONDERS)
        was_dropped = true;
    if (was_dropped)
        log_warning("bucket %s: a key without a value is no machine's, and is left out", bucket);
    return s == NATS_TIMEOUT && was_dropped ? NATS_OK : s;
}

/* Calls `add` for each key of the bucket as it is now. */
static natsStatus read_watcher(kvWatcher *watcher, const char *bucket, json_t *machines,
                               entry_fn add)
{
    for (;;) {
        kvEntry *entry = NULL;
        natsStatus s = next_entry(&entry, watcher, bucket);

        if (s != NATS_OK || !entry)
            return s;
        if (add_entry(machines, entry, add) < 0)
            s = NATS_NO_MEMORY;
        kvEntry_Destroy(entry);
        if (s != NATS_OK)
            return s;
    }
}

static natsStatus read_keys(kvStore *bucket, json_t *machines, entry_fn add)
{
    kvWatcher *watcher = NULL;
    kvWatchOptions options;
    natsStatus s;

    (void)kvWatchOptions_Init(&options);
    options.IgnoreDeletes = true;
    s = kvStore_WatchAll(&watcher, bucket, &options);
    if (s == NATS_OK)
        s = read_watcher(watcher, kvStore_Bucket(bucket), machines, add);
    kvWatcher_Destroy(watcher);
    return s;
}

/* libnats ends by a signal if an answer lacks what client_stream() looks for. */
static natsStatus open_bucket(kvStore **ret, jsCtx *js, const char *name)
{
    char stream[64];
    jsStreamInfo *info = NULL;
    natsStatus s;

    (void)snprintf(stream, sizeof(stream), BUCKET_STREAM "%s", name);
    s = client_stream(&info, js, stream);
    jsStreamInfo_Destroy(info);
    return s == NATS_OK ? js_KeyValue(ret, js, name) : s;
}

static int read_bucket(const struct client *client, const char *name, json_t *machines,
                       entry_fn add)
{
    kvStore *bucket = NULL;
    natsStatus s = open_bucket(&bucket, client->js, name);

    if (s == NATS_NOT_FOUND) {
        log_error("there is no bucket %s: \"troupe-nats setup\" makes it", name);
        return CLIENT_NOT_FOUND;
    }
    if (s == NATS_OK)
        s = read_keys(bucket, machines, add);
    /* libnats waits for as many keys as there were at first; one may expire before it comes. */
    if (s == NATS_TIMEOUT)
        s = read_keys(bucket, machines, add);
    kvStore_Destroy(bucket);
    if (s != NATS_OK && client_is_denied(client))
        return client_fail_denied(client);
    return s == NATS_OK ? CLIENT_OK : client_fail(name, s);
}

/* ---- machines ---- */

/* Returns the machine, which is made if need be; NULL without memory. */
static json_t *machine_of(json_t *machines, const struct entry *entry)
{
    json_t *machine = json_object_get(machines, entry->machine);

    if (machine)
        return machine;
    machine = json_pack("{s:s, s:s, s:I, s:I, s:{}}", "name", entry->machine, "state", STOPPED,
                        "seen_at", (json_int_t)0, REVISION, (json_int_t)0, "bridges");
    return json_object_set_new(machines, entry->machine, machine) == 0 ? machine : NULL;
}

/* The last word of its bridges is that of the machine. */
static int set_bridge(json_t *machine, const struct entry *entry, const char *state)
{
    json_t *seen_at = json_object_get(machine, "seen_at");

    if ((usec_t)json_integer_value(seen_at) <= entry->at) {
        (void)json_integer_set(seen_at, (json_int_t)entry->at);
        if (json_object_set_new(machine, "state", json_string(state)) < 0)
            return -1;
    }
    return json_object_set_new(json_object_get(machine, "bridges"), entry->group,
                               json_string(state));
}

/* From BUCKET_MACHINES, which is read first: dead unless the other bucket says more. */
static int add_known(json_t *machines, const struct entry *entry)
{
    json_t *machine = machine_of(machines, entry);

    return machine ? set_bridge(machine, entry, is(entry->value, "state", STOPPED) ? STOPPED : DEAD)
                   : -1;
}

static int copy_member(json_t *machine, const struct entry *entry, const char *name)
{
    json_t *member = json_object_get(entry->value, name);

    return member ? json_object_set(machine, name, member) : 0;
}

/* All bridges of a machine say the same about it; the last word counts. */
static int add_state(json_t *machines, const struct entry *entry)
{
    json_t *machine = machine_of(machines, entry);
    json_t *revision = json_object_get(machine, REVISION);

    if (!machine || set_bridge(machine, entry, is(entry->value, "state", UP) ? UP : STOPPED) < 0)
        return -1;
    if (!is(entry->value, "state", UP) || (uint64_t)json_integer_value(revision) > entry->revision)
        return 0;
    (void)json_integer_set(revision, (json_int_t)entry->revision);
    return copy_member(machine, entry, "version") < 0 ? -1 : copy_member(machine, entry, "groups");
}

/* Up if one of its bridges is, whatever another one said last. */
static int settle_state(json_t *machine)
{
    json_t *bridges = json_object_get(machine, "bridges"), *bridge;
    const char *group;

    (void)json_object_del(machine, REVISION);
    json_object_foreach(bridges, group, bridge)
    {
        if (strcmp(json_string_value(bridge), UP) == 0)
            return json_object_set_new(machine, "state", json_string(UP));
    }
    return 0;
}

/* Returns an array by name; NULL without memory. */
static json_t *sorted(json_t *machines)
{
    json_auto_t *array = json_array();
    _cleanup_free_ const char **names = calloc(json_object_size(machines) + 1, sizeof(*names));
    const char *name;
    json_t *machine;
    size_t n = 0;

    if (!array || !names)
        return NULL;
    json_object_foreach(machines, name, machine)
    {
        size_t i = n++;

        for (; i > 0 && strcmp(names[i - 1], name) > 0; i--)
            names[i] = names[i - 1];
        names[i] = name;
    }
    for (size_t i = 0; i < n; i++) {
        machine = json_object_get(machines, names[i]);
        if (settle_state(machine) < 0 || json_array_append(array, machine) < 0)
            return NULL;
    }
    return TAKE_PTR(array);
}

/* Returns what is known of all machines, by name. */
static int read_machines(const struct client *client, json_t **ret)
{
    json_t *machines = json_object();
    int r = read_bucket(client, BUCKET_MACHINES, machines, add_known);

    if (r == CLIENT_OK)
        r = read_bucket(client, BUCKET_STATE, machines, add_state);
    *ret = r == CLIENT_OK ? sorted(machines) : NULL;
    json_decref(machines);
    return r == CLIENT_OK && !*ret ? client_fail("machines", NATS_NO_MEMORY) : r;
}

int cluster_show(const struct config *config, const struct output *output)
{
    struct client client;
    json_t *machines = NULL;
    bool is_well;
    int r = client_open(&client, config);

    if (r == CLIENT_OK)
        r = read_machines(&client, &machines);
    client_close(&client);
    if (r != CLIENT_OK)
        return r;
    is_well = cluster_print(machines, output);
    if (output->json)
        r = client_print(json_pack("{s:O}", "machines", machines));
    else
        r = client_flush();
    json_decref(machines);
    return r == CLIENT_OK && !is_well ? CLIENT_FAILED : r;
}

/* ---- forgetting one ---- */

/* Returns why it cannot be forgotten, or CLIENT_OK. */
static int check_known(const json_t *machines, const char *name)
{
    const json_t *machine;
    size_t i;

    json_array_foreach(machines, i, machine)
    {
        if (!is(machine, "name", name))
            continue;
        if (!is(machine, "state", UP))
            return CLIENT_OK;
        log_error("machine %s is up, and would come back at once", name);
        return CLIENT_FAILED;
    }
    log_error("no machine %s is known", name);
    return CLIENT_NOT_FOUND;
}

static natsStatus purge(const struct client *client, const char *bucket, const char *machine)
{
    _cleanup_free_ char *subject = NULL, *stream = NULL;
    jsOptions options;

    if (asprintf(&subject, BUCKET_SUBJECT "%s.%s.*", bucket, machine) < 0)
        subject = NULL;
    if (asprintf(&stream, BUCKET_STREAM "%s", bucket) < 0)
        stream = NULL;
    if (!subject || !stream)
        return NATS_NO_MEMORY;
    (void)jsOptions_Init(&options);
    options.Wait = CLIENT_WAIT_MS;
    options.Stream.Purge.Subject = subject;
    return js_PurgeStream(client->js, stream, &options, NULL);
}

int cluster_forget(const struct config *config, const char *machine)
{
    struct client client;
    json_t *machines = NULL;
    natsStatus s;
    int r = client_open(&client, config);

    if (r == CLIENT_OK)
        r = read_machines(&client, &machines);
    if (r == CLIENT_OK)
        r = check_known(machines, machine);
    if (r == CLIENT_OK) {
        s = purge(&client, BUCKET_STATE, machine);
        if (s == NATS_OK)
            s = purge(&client, BUCKET_MACHINES, machine);
        r = s == NATS_OK ? CLIENT_OK : client_fail(machine, s);
    }
    json_decref(machines);
    client_close(&client);
    return r;
}

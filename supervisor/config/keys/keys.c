/* SPDX-License-Identifier: MIT */
#include "supervisor/config/keys/keys.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "shared/protocol/job-options.h"
#include "shared/ring/memory.h"
#include "shared/ring/spin.h"
#include "supervisor/config/keys/types.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

#define TIME_ALLOWED "a time span such as 500ms, 30s, 1min 30s"
#define SPIN_ALLOWED "a time span from 0 (never) to 10ms such as 50us"
#define COUNT_MAX    1000000000
#define SIZE_LIMIT   (INT64_C(1) << 62)
/* A smaller ring has no room for a record with an inline payload of a quarter of the ring. */
#define MAILBOX_MIN 16384

/* clang-format off */
static const struct config_choice TYPES[] = {
    {"actor", CONFIG_ACTOR}, {"service", CONFIG_SERVICE}, {"notify", CONFIG_NOTIFY}, {NULL, 0},
};
static const struct config_choice CELLS[] = {
    {"none", CONFIG_CELLS_NONE}, {"by-key", CONFIG_CELLS_BY_KEY}, {NULL, 0},
};
static const struct config_choice RESTARTS[] = {
    {"on-failure", CONFIG_RESTART_ON_FAILURE}, {"always", CONFIG_RESTART_ALWAYS},
    {"no", CONFIG_RESTART_NO}, {NULL, 0},
};
static const struct config_choice OVERFLOWS[] = {
    {"reject", CONFIG_OVERFLOW_REJECT}, {"block", CONFIG_OVERFLOW_BLOCK},
    {"drop-oldest", CONFIG_OVERFLOW_DROP_OLDEST}, {NULL, 0},
};
static const struct config_choice ON_CRASHES[] = {
    {"retry", CONFIG_ON_CRASH_RETRY}, {"error-queue", CONFIG_ON_CRASH_ERROR_QUEUE}, {NULL, 0},
};
static const struct config_choice STRATEGIES[] = {
    {"one-for-one", CONFIG_ONE_FOR_ONE}, {"one-for-all", CONFIG_ONE_FOR_ALL},
    {"rest-for-one", CONFIG_REST_FOR_ONE}, {NULL, 0},
};
static const struct config_choice EXCHANGES[] = {
    {"single", EXCHANGE_SINGLE}, {"typed-single", EXCHANGE_TYPED_SINGLE},
    {"typed-multi", EXCHANGE_TYPED_MULTI}, {"routing-key", EXCHANGE_ROUTING_KEY},
    {"pattern", EXCHANGE_PATTERN}, {NULL, 0},
};
static const struct config_choice LOG_LEVELS[] = {
    {"error", LOG_LEVEL_ERROR}, {"err", LOG_LEVEL_ERROR},
    {"warning", LOG_LEVEL_WARNING}, {"notice", LOG_LEVEL_NOTICE},
    {"info", LOG_LEVEL_INFO}, {"debug", LOG_LEVEL_DEBUG}, {NULL, 0},
};

#define ROW(object, section_, name_, type_, field)                                                 \
    .section = (section_), .name = (name_), .type = &CONFIG_TYPE_##type_,                              \
    .offset = offsetof(struct object, field), .size = sizeof(((struct object *)0)->field)
#define IN_GROUP(...)     ROW(config_group, "Group", __VA_ARGS__)
#define IN_POOL(...)      ROW(config_group, "Pool", __VA_ARGS__)
#define IN_JOBS(...)      ROW(config_group, "Jobs", __VA_ARGS__)
#define IN_RESTART(...)   ROW(config_group, "Restart", __VA_ARGS__)
#define IN_WORKER(...)    ROW(config_group, "Worker", __VA_ARGS__)
#define IN_RESOURCES(...) ROW(config_group, "Resources", __VA_ARGS__)
#define IN_DAEMON(...)    ROW(config_daemon, "Supervisor", __VA_ARGS__)
#define IN_EXCHANGE(...)  ROW(config_exchange, "Exchange", __VA_ARGS__)
#define SET_IN(field)     .set_offset = offsetof(struct config_group, field)

static const struct config_key GROUP_KEYS[] = {
    {IN_GROUP("Description", TEXT, description), .fallback = "", .live = true,
     .allowed = "any text"},
    {IN_GROUP("Type", CHOICE, type), .fallback = "actor", .choices = TYPES,
     .allowed = "actor, service, notify"},
    {IN_GROUP("ExecStart", COMMAND, exec_start),
     .allowed = "the absolute path of a program, or its name on the standard PATH, and arguments "
                "with %n (group), %i (slot), %%"},
    {IN_GROUP("User", TEXT, user), .allowed = "the name or number of an existing user"},
    {IN_GROUP("Group", TEXT, group_name), .allowed = "the name or number of an existing group"},
    {IN_GROUP("WorkingDirectory", PATH, working_directory),
     .allowed = "the absolute path of an existing directory"},
    {IN_GROUP("Environment", ENVIRONMENT, environment),
     .allowed = "NAME=VALUE, several separated by spaces, \"NAME=a b\" with spaces in the value"},
    {IN_GROUP("EnvironmentFile", FILES, environment_files),
     .allowed = "the absolute path of a file, with - in front if it may be missing"},
    {IN_GROUP("After", GROUPS, after), .live = true,
     .allowed = "names of other groups, separated by spaces"},

    {IN_POOL("Size", WORKERS, size), .fallback = "1", .min = 1, .max = 4096, .live = true,
     .allowed = "a number from 1 to 4096, or a share of the processors from 1% to 1000%"},
    {IN_POOL("Spare", UNSIGNED, spare), .fallback = "0", .max = 4096, .live = true,
     .allowed = "a number from 0 (none) to 4096"},
    {IN_POOL("Cells", CHOICE, cells), .fallback = "none", .choices = CELLS, .live = true,
     .allowed = "none, by-key"},
    {IN_POOL("CellsMax", COUNT, cells_max), .fallback = "1000", .min = 1, .max = 100000,
     .live = true, .allowed = "a number from 1 to 100000"},
    {IN_POOL("CellIdleSec", TIME, cell_idle), .fallback = "5min", .min = USEC_PER_MSEC,
     .max = INT64_MAX, .infinity = true, .live = true,
     .allowed = "a time span from 1ms such as 30s, 1min 30s; infinity"},
    {IN_POOL("CellsQueueMemoryMax", SIZE, cells_queue_memory_max), .fallback = "1G", .min = 1 << 20,
     .max = SIZE_LIMIT, .live = true, .allowed = "a size from 1M such as 256M, 2G"},
    {IN_POOL("Prefetch", UNSIGNED, prefetch), .fallback = "1", .min = 1, .max = 64, .live = true,
     .allowed = "a number from 1 to 64"},
    {IN_POOL("MaxJobs", UNSIGNED, max_jobs), .fallback = "0", .max = COUNT_MAX, .live = true,
     .allowed = "a number from 0 (never) to 1000000000"},
    {IN_POOL("MaxMemory", SIZE, max_memory), .fallback = "infinity", .min = 4096,
     .max = SIZE_LIMIT, .infinity = true, .live = true,
     .allowed = "a size from 4K such as 64M, infinity"},
    {IN_POOL("MaxAgeSec", TIMEOUT, max_age), .fallback = "infinity", .max = INT64_MAX,
     .infinity = true, .live = true, .allowed = TIME_ALLOWED ", infinity"},
    {IN_POOL("BatchMax", UNSIGNED, batch_max), .fallback = "10", .min = 1, .max = 1000,
     .live = true, .allowed = "a number from 1 to 1000"},

    {IN_JOBS("QueueMax", COUNT, queue_max), .fallback = "10000", .min = 1, .max = COUNT_MAX,
     .live = true, .allowed = "a number from 1 to 1000000000"},
    {IN_JOBS("QueueMemoryMax", SIZE, queue_memory_max), .fallback = "256M", .min = 1,
     .max = SIZE_LIMIT, .live = true, .allowed = "a size such as 64K, 256M, 2G"},
    {IN_JOBS("TimeoutSec", TIMEOUT, timeout), .fallback = "infinity", .max = INT64_MAX,
     .infinity = true, .live = true, .allowed = TIME_ALLOWED ", infinity"},
    {IN_JOBS("MaxRetries", UNSIGNED, max_retries), .fallback = "3", .max = JOB_RETRIES_MAX,
     .live = true, .allowed = "a number from 0 to 1000000"},
    {IN_JOBS("BackoffMinSec", TIME, backoff_min), .fallback = "100ms", .max = JOB_BACKOFF_MAX,
     .live = true, .allowed = TIME_ALLOWED ", up to 1d"},
    {IN_JOBS("BackoffMaxSec", TIME, backoff_max), .fallback = "30s", .max = JOB_BACKOFF_MAX,
     .live = true, .allowed = TIME_ALLOWED ", up to 1d"},
    {IN_JOBS("BackoffRandom", FRACTION, backoff_random), .fallback = "0.2", .max = 1,
     .live = true, .allowed = "a share from 0 to 1, or 0% to 100%"},
    {IN_JOBS("ResultTTLSec", TIME, result_ttl), .fallback = "1h", .max = INT64_MAX,
     .infinity = true, .live = true, .allowed = TIME_ALLOWED ", 0 (keep none), infinity"},
    {IN_JOBS("ResultsMax", COUNT, results_max), .fallback = "10000", .max = COUNT_MAX,
     .live = true, .allowed = "a number from 0 (keep none) to 1000000000"},
    {IN_JOBS("ResultsMemoryMax", SIZE, results_memory_max), .fallback = "64M", .max = SIZE_LIMIT,
     .live = true, .allowed = "a size such as 64K, 256M, 2G"},
    {IN_JOBS("NoProgressSec", TIMEOUT, no_progress), .fallback = "infinity", .max = INT64_MAX,
     .infinity = true, .live = true, .allowed = TIME_ALLOWED ", infinity"},

    {IN_RESTART("Restart", CHOICE, restart), .fallback = "on-failure", .choices = RESTARTS,
     .live = true, .allowed = "on-failure, always, no"},
    {IN_RESTART("MinSec", TIME, min), .fallback = "100ms", .max = INT64_MAX, .live = true,
     .allowed = TIME_ALLOWED},
    {IN_RESTART("MaxSec", TIME, max), .fallback = "30s", .max = INT64_MAX, .live = true,
     .allowed = TIME_ALLOWED},
    {IN_RESTART("Random", FRACTION, random), .fallback = "0.2", .max = 1, .live = true,
     .allowed = "a share from 0 to 1, or 0% to 100%"},
    {IN_RESTART("ResetAfterSec", TIME, reset_after), .fallback = "10s", .max = INT64_MAX,
     .infinity = true, .live = true, .allowed = TIME_ALLOWED ", infinity"},
    {IN_RESTART("StartLimitBurst", UNSIGNED, start_limit_burst), .fallback = "0", .max = 1000,
     .live = true, .allowed = "a number from 0 (no limit) to 1000"},
    {IN_RESTART("StartLimitIntervalSec", TIME, start_limit_interval), .fallback = "10s",
     .max = INT64_MAX, .infinity = true, .live = true, .allowed = TIME_ALLOWED ", infinity"},
    {IN_RESTART("Strategy", CHOICE, strategy), .fallback = "one-for-one", .choices = STRATEGIES,
     .live = true, .allowed = "one-for-one, one-for-all, rest-for-one"},

    {IN_WORKER("TimeoutStartSec", TIMEOUT, timeout_start), .fallback = "30s", .max = INT64_MAX,
     .infinity = true, .live = true, .allowed = TIME_ALLOWED ", infinity"},
    {IN_WORKER("TimeoutStopSec", TIMEOUT, timeout_stop), .fallback = "10s", .max = INT64_MAX,
     .infinity = true, .live = true, .allowed = TIME_ALLOWED ", infinity"},
    {IN_WORKER("WatchdogSec", TIMEOUT, watchdog), .fallback = "infinity", .max = INT64_MAX,
     .infinity = true, .allowed = TIME_ALLOWED ", infinity"},
    {IN_WORKER("KillSignal", SIGNAL, kill_signal), .fallback = "SIGTERM", .live = true,
     .allowed = "the name or number of a signal, such as SIGINT, TERM, 15, RTMIN+3"},
    {IN_WORKER("MailboxSize", SIZE32, mailbox_size), .fallback = "256K", .min = MAILBOX_MIN,
     .max = MEMORY_RING_SIZE_MAX, .allowed = "a size from 16K to 1G"},
    {IN_WORKER("InlineMax", SIZE32, inline_max), .fallback = "32K",
     .max = MEMORY_RING_SIZE_MAX / 4, .allowed = "a size from 0 to a quarter of MailboxSize="},
    {IN_WORKER("SpinUsec", TIME, spin), .fallback = "50us", .max = SPIN_USEC_MAX,
     .allowed = SPIN_ALLOWED},
    {IN_WORKER("MailboxMax", COUNT, mailbox_max), .fallback = "10000", .min = 1, .max = COUNT_MAX,
     .live = true, .allowed = "a number from 1 to 1000000000"},
    {IN_WORKER("MailboxMemoryMax", SIZE, mailbox_memory_max), .fallback = "64M", .min = 1,
     .max = SIZE_LIMIT, .live = true, .allowed = "a size such as 64K, 256M, 2G"},
    {IN_WORKER("Overflow", CHOICE, overflow), .fallback = "reject", .choices = OVERFLOWS,
     .live = true, .allowed = "reject, block, drop-oldest"},
    {IN_WORKER("OnCrash", CHOICE, on_crash), .fallback = "retry", .choices = ON_CRASHES,
     .live = true, .allowed = "retry, error-queue"},
    {IN_WORKER("MessageRetries", UNSIGNED, message_retries), .fallback = "3", .max = 1000000,
     .live = true, .allowed = "a number from 0 to 1000000"},

    {IN_RESOURCES("MemoryMax", SIZE, memory_max), .fallback = "infinity", .min = 4096,
     .max = SIZE_LIMIT, .infinity = true, .allowed = "a size from 4K such as 512M, infinity"},
    {IN_RESOURCES("MemoryHigh", SIZE, memory_high), .fallback = "infinity", .min = 4096,
     .max = SIZE_LIMIT, .infinity = true, .allowed = "a size from 4K such as 512M, infinity"},
    {IN_RESOURCES("CPUWeight", COUNT, cpu_weight), .min = 1, .max = 10000,
     .allowed = "a number from 1 to 10000"},
    {IN_RESOURCES("CPUQuota", PERCENT, cpu_quota_percent), .min = 1, .max = 1000000,
     .allowed = "a percentage of one CPU from 1% on, such as 50%, 200%"},
    {IN_RESOURCES("TasksMax", COUNT, tasks_max), .fallback = "infinity", .min = 1,
     .max = COUNT_MAX, .infinity = true, .allowed = "a number from 1 to 1000000000, infinity"},
    {IN_RESOURCES("LimitNOFILE", COUNT, limit_nofile), SET_IN(limit_nofile_set), .min = 8,
     .max = COUNT_MAX, .infinity = true,
     .allowed = "one number from 8 to 1000000000 (soft and hard limit), infinity"},
    {IN_RESOURCES("LimitCORE", SIZE, limit_core), SET_IN(limit_core_set), .max = SIZE_LIMIT,
     .infinity = true, .allowed = "one size (soft and hard limit) such as 0, 512M, infinity"},
    {IN_RESOURCES("LimitAS", SIZE, limit_as), SET_IN(limit_as_set), .min = 4096,
     .max = SIZE_LIMIT, .infinity = true,
     .allowed = "one size from 4K (soft and hard limit) such as 512M, infinity"},
    {IN_RESOURCES("Nice", INTEGER, nice), SET_IN(nice_set), .min = -20, .max = 19,
     .allowed = "a number from -20 (first served) to 19"},
    {IN_RESOURCES("OOMScoreAdjust", INTEGER, oom_score_adjust), SET_IN(oom_score_adjust_set),
     .min = -1000, .max = 1000, .allowed = "a number from -1000 (never killed) to 1000"},
};

static const struct config_key DAEMON_KEYS[] = {
    {IN_DAEMON("AdminGroup", TEXT, admin_group),
     .allowed = "the name or number of an existing group"},
    {IN_DAEMON("ReadGroup", TEXT, read_group),
     .allowed = "the name or number of an existing group"},
    {IN_DAEMON("ClientsMax", UNSIGNED, clients_max), .fallback = "256", .min = 1, .max = 65536,
     .allowed = "a number from 1 to 65536"},
    {IN_DAEMON("ClientIdleSec", TIMEOUT, client_idle), .fallback = "infinity", .max = INT64_MAX,
     .infinity = true, .allowed = TIME_ALLOWED ", infinity"},
    {IN_DAEMON("ClientRequestSec", TIME, client_request), .fallback = "30s", .min = USEC_PER_MSEC,
     .max = 3600 * USEC_PER_SEC, .allowed = "a time from 1ms to 1h"},
    {IN_DAEMON("DeathsMax", UNSIGNED, deaths_max), .fallback = "1000", .min = 1, .max = 1000000,
     .allowed = "a number from 1 to 1000000"},
    {IN_DAEMON("DeadLettersMax", COUNT, dead_letters_max), .fallback = "10000", .max = 1000000,
     .allowed = "a number from 0 (keep none) to 1000000"},
    {IN_DAEMON("DeadLettersMemoryMax", SIZE, dead_letters_memory_max), .fallback = "64M",
     .max = SIZE_LIMIT, .allowed = "a size such as 64K, 64M, 2G"},
    {IN_DAEMON("TimeoutStopSec", TIMEOUT, timeout_stop), .fallback = "30s", .max = INT64_MAX,
     .infinity = true, .allowed = TIME_ALLOWED ", infinity"},
    {IN_DAEMON("LogLevel", CHOICE, log_level), .fallback = "info", .choices = LOG_LEVELS,
     .allowed = "error, warning, notice, info, debug"},
    {IN_DAEMON("SpinUsec", TIME, spin), .fallback = "50us", .max = SPIN_USEC_MAX,
     .allowed = SPIN_ALLOWED},
};
static const struct config_key EXCHANGE_KEYS[] = {
    {IN_EXCHANGE("Description", TEXT, description), .fallback = "", .allowed = "any text"},
    {IN_EXCHANGE("Type", CHOICE, type), .fallback = "typed-multi", .choices = EXCHANGES,
     .allowed = "single, typed-single, typed-multi, routing-key, pattern"},
};
/* clang-format on */

const struct config_schema CONFIG_GROUP_SCHEMA = {GROUP_KEYS, ELEMENTS(GROUP_KEYS)};
const struct config_schema CONFIG_DAEMON_SCHEMA = {DAEMON_KEYS, ELEMENTS(DAEMON_KEYS)};
const struct config_schema CONFIG_EXCHANGE_SCHEMA = {EXCHANGE_KEYS, ELEMENTS(EXCHANGE_KEYS)};

const struct config_key *config_schema_find(const struct config_schema *schema, const char *section,
                                            const char *name)
{
    for (size_t i = 0; i < schema->n_keys; i++)
        if (strcmp(schema->keys[i].section, section) == 0 &&
            strcmp(schema->keys[i].name, name) == 0)
            return &schema->keys[i];
    return NULL;
}

bool config_schema_has_section(const struct config_schema *schema, const char *section)
{
    for (size_t i = 0; i < schema->n_keys; i++)
        if (strcmp(schema->keys[i].section, section) == 0)
            return true;
    return false;
}

static void *field_of(const struct config_key *key, void *object)
{
    return (char *)object + key->offset;
}

static const void *const_field_of(const struct config_key *key, const void *object)
{
    return (const char *)object + key->offset;
}

static bool is_set(const struct config_key *key, const void *object)
{
    return key->set_offset == 0 || *(const bool *)((const char *)object + key->set_offset);
}

static void clear(const struct config_key *key, void *object)
{
    if (key->type->clear)
        key->type->clear(field_of(key, object));
    if (key->set_offset > 0)
        *(bool *)((char *)object + key->set_offset) = false;
}

/* No default: CONFIG_UNSET in numbers that have no flag of their own, which means "leave alone". */
static int set_default(const struct config_key *key, void *object)
{
    const char *reason;
    int r;

    clear(key, object);
    if (!key->fallback) {
        bool number = !key->type->clear && key->set_offset == 0;

        memset(field_of(key, object), number ? 0xff : 0, key->size);
        return 0;
    }
    r = key->type->parse(key, key->fallback, field_of(key, object), &reason);
    assert(r <= 0);
    return r;
}

int config_key_assign(const struct config_key *key, void *object, const char *value,
                      const char **ret_reason)
{
    int r;

    if (*value == '\0')
        return set_default(key, object);
    r = key->type->parse(key, value, field_of(key, object), ret_reason);
    if (r == 0 && key->set_offset > 0)
        *(bool *)((char *)object + key->set_offset) = true;
    return r;
}

int config_schema_defaults(const struct config_schema *schema, void *object)
{
    for (size_t i = 0; i < schema->n_keys; i++) {
        int r = set_default(&schema->keys[i], object);

        if (r < 0)
            return r;
    }
    return 0;
}

void config_schema_clear(const struct config_schema *schema, void *object)
{
    for (size_t i = 0; i < schema->n_keys; i++)
        clear(&schema->keys[i], object);
}

static bool key_equal(const struct config_key *key, const void *a, const void *b)
{
    if (is_set(key, a) != is_set(key, b))
        return false;
    if (!is_set(key, a))
        return true;
    if (key->type->equal)
        return key->type->equal(const_field_of(key, a), const_field_of(key, b));
    return memcmp(const_field_of(key, a), const_field_of(key, b), key->size) == 0;
}

bool config_schema_equal(const struct config_schema *schema, const void *a, const void *b,
                         bool only_process)
{
    for (size_t i = 0; i < schema->n_keys; i++)
        if (!(only_process && schema->keys[i].live) && !key_equal(&schema->keys[i], a, b))
            return false;
    return true;
}

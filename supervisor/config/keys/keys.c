/* SPDX-License-Identifier: MIT */
#include "supervisor/config/keys/keys.h"

#include "shared/base/cleanup.h"
#include "shared/base/hash.h"
#include "shared/base/log.h"
#include "shared/protocol/job-options.h"
#include "shared/ring/memory.h"
#include "shared/ring/spin.h"
#include "supervisor/config/keys/types.h"
#include "supervisor/config/syntax/values.h"
#include <assert.h>
#include <errno.h>
#include <string.h>

#define COUNT_MAX  1000000000
#define SIZE_LIMIT (INT64_C(1) << 62)
/* A smaller ring has no room for a record with an inline payload of a quarter of the ring. */
#define MAILBOX_MIN 16384

/* clang-format off */
#define ROW(object, section_, name_, type_, field)                                                 \
    .section = (section_), .name = (name_), .type = &CONFIG_TYPE_##type_,                          \
    .offset = offsetof(struct object, field), .size = sizeof(((struct object *)0)->field)
#define IN_GROUP(...)     ROW(config_group, "Group", __VA_ARGS__)
#define IN_POOL(...)      ROW(config_group, "Pool", __VA_ARGS__), LIVE
#define IN_JOBS(...)      ROW(config_group, "Jobs", __VA_ARGS__), LIVE
#define IN_LIMITS(...)    ROW(config_group, "Limits", __VA_ARGS__), LIVE
#define IN_LIMIT(...)     ROW(config_limit, "Limit", __VA_ARGS__)
#define IN_RESTART(...)   ROW(config_group, "Restart", __VA_ARGS__), LIVE
#define IN_WORKER(...)    ROW(config_group, "Worker", __VA_ARGS__)
#define IN_RESOURCES(...) ROW(config_group, "Resources", __VA_ARGS__)
#define IN_SANDBOX(...)   ROW(config_group, "Sandbox", __VA_ARGS__)
#define IN_DAEMON(...)    ROW(config_daemon, "Supervisor", __VA_ARGS__)
#define IN_EXCHANGE(...)  ROW(config_exchange, "Exchange", __VA_ARGS__)
#define IN_SCHEDULE(...)  ROW(config_schedule, "Schedule", __VA_ARGS__)
#define IN_JOB(...)       ROW(config_schedule, "Job", __VA_ARGS__)
#define SET_IN(field)     .set_offset = offsetof(struct config_group, field)
#define SET_IN_SCHEDULE(field) .set_offset = offsetof(struct config_schedule, field)
#define LIVE              .live = true

#define DEFAULT(text)     .fallback = (text)
#define TEXT_OF_(number)  #number
#define TEXT_OF(number)   TEXT_OF_(number)
/* A number from `low` to `high`; `note` follows the first: " (none)". */
#define FROM(low, note, high)                                                                      \
    .min = (low), .max = (high), .allowed = "a number from " #low note " to " TEXT_OF(high)
#define SIZE_FROM(low, text) .min = (low), .max = SIZE_LIMIT, .allowed = (text)
#define SIZE_OR_INFINITY(low, text) SIZE_FROM(low, text ", infinity"), .infinity = true
#define ANY_SIZE          "a size such as 64K, 256M, 2G"
#define TIME_TO(high, more)                                                                        \
    .max = (high), .allowed = "a time span such as 500ms, 30s, 1min 30s" more
#define TIME_OR_INFINITY TIME_TO(INT64_MAX, ", infinity"), .infinity = true
#define INTERVAL                                                                                   \
    .min = USEC_PER_SEC, .max = JOB_DELAY_MAX, .allowed = "a time span from 1s to 366d such as 5min"
#define SPIN                                                                                       \
    .max = SPIN_USEC_MAX, .allowed = "a time span from 0 (never) to 10ms such as 50us"
#define A_RATE                                                                                     \
    DEFAULT("infinity"),                                                                           \
        .allowed = "1 to 1000000 jobs in a time from 1ms to 1d, such as 100/1min, or infinity"
#define A_BURST DEFAULT("1"), FROM(1, "", 100000)
#define A_RUNNING                                                                                  \
    DEFAULT("infinity"), .min = 1, .max = COUNT_MAX, .infinity = true,                             \
        .allowed = "a number from 1 to 1000000000, infinity"
#define PRESSURE                                                                                   \
    DEFAULT("infinity"), .min = USEC_PER_MSEC, .max = 2 * USEC_PER_SEC, .infinity = true,          \
        .allowed = "a time span from 1ms to 2s such as 200ms; infinity"
#define STATUS_LIST                                                                                \
    .allowed = "exit statuses from 0 to 255 and names of signals, such as 143 SIGINT"
#define SHARE             .max = 1, .allowed = "a share from 0 to 1, or 0% to 100%"
#define SOME_OF(example)                                                                           \
    .allowed = "none, names such as " example ", all others with ~ in front of the line"
#define PLACES                                                                                     \
    .allowed = "absolute paths without . and .., each with - in front if it may be missing"
#define EXISTING(what)    .allowed = "the name or number of an existing " what

static const struct config_key GROUP_KEYS[] = {
    {IN_GROUP("Description", TEXT, description), LIVE, DEFAULT(""), .allowed = "any text"},
    {IN_GROUP("Type", CHOICE, type), DEFAULT("actor"), .allowed = "actor, service, notify"},
    {IN_GROUP("ExecStart", COMMAND, exec_start),
     .allowed = "the absolute path of a program, or its name on the standard PATH, and arguments "
                "with %n (group), %i (slot), %%"},
    {IN_GROUP("User", TEXT, user), EXISTING("user")},
    {IN_GROUP("Group", TEXT, group_name), EXISTING("group")},
    {IN_GROUP("SubmitUser", TEXT, submit_user), LIVE, EXISTING("user")},
    {IN_GROUP("SubmitGroup", TEXT, submit_group), LIVE, EXISTING("group")},
    {IN_GROUP("MaySubmit", GROUPS, may_submit),
     .allowed = "names of groups, separated by spaces"},
    {IN_GROUP("WorkingDirectory", PATH, working_directory),
     .allowed = "the absolute path of an existing directory"},
    {IN_GROUP("Environment", ENVIRONMENT, environment),
     .allowed = "NAME=VALUE, several separated by spaces, \"NAME=a b\" with spaces in the value"},
    {IN_GROUP("EnvironmentFile", FILES, environment_files),
     .allowed = "the absolute path of a file, with - in front if it may be missing"},
    {IN_GROUP("After", GROUPS, after), LIVE,
     .allowed = "names of other groups, separated by spaces"},
    {IN_GROUP("Autostart", BOOL, autostart), LIVE, DEFAULT("yes"), .allowed = "no, yes"},

    {IN_POOL("Size", POOL_SIZE, size), DEFAULT("1"), .min = 1, .max = 4096,
     .allowed = "a number from 1 to 4096, a share of the processors from 1% to 1000%, or a range "
                "such as 2..16, 0..8 or 2..auto (auto: the number of processors)"},
    {IN_POOL("TargetWaitSec", TIME, target_wait), DEFAULT("1s"), .min = USEC_PER_MSEC,
     .max = 3600 * USEC_PER_SEC, .allowed = "a time span from 1ms to 1h such as 200ms, 5s"},
    {IN_POOL("IdleSec", TIME, idle), DEFAULT("30s"), .min = USEC_PER_MSEC, .max = INT64_MAX,
     .infinity = true, .allowed = "a time span from 1ms such as 30s, 5min; infinity"},
    {IN_POOL("MemoryPressureThresholdSec", TIME, memory_pressure), PRESSURE},
    {IN_POOL("CPUPressureThresholdSec", TIME, cpu_pressure), PRESSURE},
    {IN_POOL("IOPressureThresholdSec", TIME, io_pressure), PRESSURE},
    {IN_POOL("PoolMax", UNSIGNED, pool_max), DEFAULT("0"), FROM(0, " (no limit)", 4096)},
    {IN_POOL("Spare", UNSIGNED, spare), DEFAULT("0"), FROM(0, " (none)", 4096)},
    {IN_POOL("Template", CHOICE, template), DEFAULT("no"), .allowed = "no, slot"},
    {IN_POOL("TemplateMaxAgeSec", TIMEOUT, template_max_age), DEFAULT("infinity"),
     TIME_OR_INFINITY},
    {IN_POOL("Cells", CHOICE, cells), DEFAULT("none"), .allowed = "none, by-key"},
    {IN_POOL("CellsMax", COUNT, cells_max), DEFAULT("1000"), FROM(1, "", 100000)},
    {IN_POOL("CellIdleSec", TIME, cell_idle), DEFAULT("5min"), .min = USEC_PER_MSEC,
     .max = INT64_MAX, .infinity = true,
     .allowed = "a time span from 1ms such as 30s, 1min 30s; infinity"},
    {IN_POOL("CellsQueueMemoryMax", SIZE, cells_queue_memory_max), DEFAULT("1G"),
     SIZE_FROM(1 << 20, "a size from 1M such as 256M, 2G")},
    {IN_POOL("Prefetch", UNSIGNED, prefetch), DEFAULT("1"), FROM(1, "", 64)},
    {IN_POOL("MaxJobs", UNSIGNED, max_jobs), DEFAULT("0"), FROM(0, " (never)", COUNT_MAX)},
    {IN_POOL("MaxMemory", SIZE, max_memory), DEFAULT("infinity"),
     SIZE_OR_INFINITY(4096, "a size from 4K such as 64M")},
    {IN_POOL("MaxAgeSec", TIMEOUT, max_age), DEFAULT("infinity"), TIME_OR_INFINITY},
    {IN_POOL("BatchMax", UNSIGNED, batch_max), DEFAULT("10"), FROM(1, "", 1000)},

    {IN_JOBS("Durable", BOOL, durable), DEFAULT("no"), .allowed = "no, yes"},
    {IN_JOBS("QueueMax", COUNT, queue_max), DEFAULT("10000"), FROM(1, "", COUNT_MAX)},
    {IN_JOBS("QueueMemoryMax", SIZE, queue_memory_max), DEFAULT("256M"), SIZE_FROM(1, ANY_SIZE)},
    {IN_JOBS("TimeoutSec", TIMEOUT, timeout), DEFAULT("infinity"), TIME_OR_INFINITY},
    {IN_JOBS("MaxRetries", UNSIGNED, max_retries), DEFAULT("3"), .max = JOB_RETRIES_MAX,
     .allowed = "a number from 0 to 1000000"},
    {IN_JOBS("RetriesResetOnProgress", BOOL, retries_reset), DEFAULT("no"), .allowed = "no, yes"},
    {IN_JOBS("BackoffMinSec", TIME, backoff_min), DEFAULT("100ms"),
     TIME_TO(JOB_BACKOFF_MAX, ", up to 1d")},
    {IN_JOBS("BackoffMaxSec", TIME, backoff_max), DEFAULT("30s"),
     TIME_TO(JOB_BACKOFF_MAX, ", up to 1d")},
    {IN_JOBS("BackoffRandom", FRACTION, backoff_random), DEFAULT("0.2"), SHARE},
    {IN_JOBS("ResultMax", SIZE, result_max), DEFAULT("64M"), SIZE_FROM(1, ANY_SIZE)},
    {IN_JOBS("ResultTTLSec", TIME, result_ttl), DEFAULT("1h"),
     TIME_TO(INT64_MAX, ", 0 (keep none), infinity"), .infinity = true},
    {IN_JOBS("ResultsMax", COUNT, results_max), DEFAULT("10000"),
     FROM(0, " (keep none)", COUNT_MAX)},
    {IN_JOBS("ResultsMemoryMax", SIZE, results_memory_max), DEFAULT("64M"), SIZE_FROM(0, ANY_SIZE)},
    {IN_JOBS("History", TIME, history), DEFAULT("0"),
     .min = 0, .max = INT64_MAX, .infinity = true,
     .allowed = "a time span such as 12h, 30d, 0 (none is kept), infinity"},
    {IN_JOBS("HistoryMax", SIZE, history_max), DEFAULT("1G"),
     SIZE_FROM(1 << 20, "a size from 1M such as 256M, 2G")},
    {IN_JOBS("HistoryPayload", BOOL, history_payload), DEFAULT("no"), .allowed = "no, yes"},
    {IN_JOBS("NoProgressSec", TIMEOUT, no_progress), DEFAULT("infinity"), TIME_OR_INFINITY},
    {IN_JOBS("OnOom", TEXT, on_oom), .allowed = "the name of another group"},
    {IN_JOBS("Unique", CHOICE, unique), DEFAULT("no"), .allowed = "no, payload, key"},
    {IN_JOBS("UniqueUntil", CHOICE, unique_until), DEFAULT("end"), .allowed = "end, start"},
    {IN_JOBS("OnConflict", CHOICE, on_conflict), DEFAULT("reject"),
     .allowed = "existing, reject, replace, requeue"},

    {IN_LIMITS("Rate", RATE, limits.rate), A_RATE},
    {IN_LIMITS("Burst", COUNT, limits.burst), A_BURST},
    {IN_LIMITS("RatePer", CHOICE, rate_per), DEFAULT("group"), .allowed = "group, key"},
    {IN_LIMITS("Running", COUNT, limits.running), A_RUNNING},
    {IN_LIMITS("RunningPer", CHOICE, running_per), DEFAULT("group"), .allowed = "group, key"},
    {IN_LIMITS("Uses", GROUPS, uses),
     .allowed = "up to 8 names of NAME.limit files, separated by spaces"},

    {IN_RESTART("Restart", CHOICE, restart), DEFAULT("on-failure"),
     .allowed = "on-failure, always, no"},
    {IN_RESTART("SuccessExitStatus", STATUSES, success), STATUS_LIST},
    {IN_RESTART("RestartPreventExitStatus", STATUSES, no_restart), STATUS_LIST},
    {IN_RESTART("MinSec", TIME, min), DEFAULT("100ms"), TIME_TO(INT64_MAX, "")},
    {IN_RESTART("MaxSec", TIME, max), DEFAULT("30s"), TIME_TO(INT64_MAX, "")},
    {IN_RESTART("Random", FRACTION, random), DEFAULT("0.2"), SHARE},
    {IN_RESTART("ResetAfterSec", TIME, reset_after), DEFAULT("10s"), TIME_OR_INFINITY},
    {IN_RESTART("StartLimitBurst", UNSIGNED, start_limit_burst), DEFAULT("0"),
     FROM(0, " (no limit)", 1000)},
    {IN_RESTART("StartLimitIntervalSec", TIME, start_limit_interval), DEFAULT("10s"),
     TIME_OR_INFINITY},

    {IN_WORKER("TimeoutStartSec", TIMEOUT, timeout_start), LIVE, DEFAULT("30s"), TIME_OR_INFINITY},
    {IN_WORKER("TimeoutStopSec", TIMEOUT, timeout_stop), LIVE, DEFAULT("10s"), TIME_OR_INFINITY},
    {IN_WORKER("WatchdogSec", TIMEOUT, watchdog), DEFAULT("infinity"), TIME_OR_INFINITY},
    {IN_WORKER("CrashStacks", BOOL, crash_stacks), DEFAULT("no"), .allowed = "no, yes"},
    {IN_WORKER("KillSignal", SIGNAL, kill_signal), LIVE, DEFAULT("SIGTERM"),
     .allowed = "the name or number of a signal, such as SIGINT, TERM, 15, RTMIN+3"},
    {IN_WORKER("ReloadSignal", SIGNAL, reload_signal), LIVE,
     .allowed = "the name or number of a signal, such as SIGHUP, USR1"},
    {IN_WORKER("KillMode", CHOICE, kill_mode), LIVE, DEFAULT("control-group"),
     .allowed = "control-group, mixed, process"},
    {IN_WORKER("MailboxSize", SIZE32, mailbox_size), DEFAULT("256K"), .min = MAILBOX_MIN,
     .max = MEMORY_RING_SIZE_MAX, .allowed = "a size from 16K to 1G"},
    {IN_WORKER("InlineMax", SIZE32, inline_max), DEFAULT("32K"), .max = MEMORY_RING_SIZE_MAX / 4,
     .allowed = "a size from 0 to a quarter of MailboxSize="},
    {IN_WORKER("SpinUsec", TIME, spin), DEFAULT("50us"), SPIN},
    {IN_WORKER("MailboxMax", COUNT, mailbox_max), LIVE, DEFAULT("10000"), FROM(1, "", COUNT_MAX)},
    {IN_WORKER("MailboxMemoryMax", SIZE, mailbox_memory_max), LIVE, DEFAULT("64M"),
     SIZE_FROM(1, ANY_SIZE)},
    {IN_WORKER("Overflow", CHOICE, overflow), LIVE, DEFAULT("reject"),
     .allowed = "reject, block, drop-oldest"},
    {IN_WORKER("OnCrash", CHOICE, on_crash), LIVE, DEFAULT("retry"),
     .allowed = "retry, error-queue"},
    {IN_WORKER("MessageRetries", UNSIGNED, message_retries), LIVE, DEFAULT("3"),
     FROM(0, "", 1000000)},
    {IN_WORKER("SyslogLevelPrefix", BOOL, syslog_level_prefix), LIVE, DEFAULT("yes"),
     .allowed = "no, yes"},
    {IN_WORKER("LogRateLimitIntervalSec", TIME, log_rate_limit_interval), LIVE, DEFAULT("1s"),
     TIME_TO(3600 * USEC_PER_SEC, ", up to 1h, 0 (no limit)")},
    {IN_WORKER("LogRateLimitBurst", UNSIGNED, log_rate_limit_burst), LIVE, DEFAULT("200"),
     FROM(0, " (no limit)", 1000000)},

    {IN_RESOURCES("MemoryMax", SIZE, memory_max), DEFAULT("infinity"),
     SIZE_OR_INFINITY(4096, "a size from 4K such as 512M")},
    {IN_RESOURCES("MemoryHigh", SIZE, memory_high), DEFAULT("infinity"),
     SIZE_OR_INFINITY(4096, "a size from 4K such as 512M")},
    {IN_RESOURCES("MemorySwapMax", SIZE, memory_swap_max), DEFAULT("infinity"),
     SIZE_OR_INFINITY(0, "a size such as 0 (none), 512M")},
    {IN_RESOURCES("MemoryReclaimSec", TIME, memory_reclaim), LIVE, DEFAULT("infinity"),
     .min = USEC_PER_MSEC, .max = INT64_MAX, .infinity = true,
     .allowed = "a time span from 1ms such as 30s, 5min; infinity"},
    {IN_RESOURCES("CPUWeight", COUNT, cpu_weight), FROM(1, "", 10000)},
    {IN_RESOURCES("CPUQuota", PERCENT, cpu_quota_percent), .min = 1, .max = 1000000,
     .allowed = "a percentage of one CPU from 1% on, such as 50%, 200%"},
    {IN_RESOURCES("AllowedCPUs", CPUS, allowed_cpus),
     .allowed = "numbers of CPUs and ranges up to " TEXT_OF(VALUES_CPU_MAX) ", such as 0-3 6"},
    {IN_RESOURCES("IOWeight", COUNT, io_weight), FROM(1, "", 10000)},
    {IN_RESOURCES("TasksMax", COUNT, tasks_max), DEFAULT("infinity"), .min = 1, .max = COUNT_MAX,
     .infinity = true, .allowed = "a number from 1 to 1000000000, infinity"},
    {IN_RESOURCES("LimitNOFILE", COUNT, limit_nofile), SET_IN(limit_nofile_set), .min = 8,
     .max = COUNT_MAX, .infinity = true,
     .allowed = "one number from 8 to 1000000000 (soft and hard limit), infinity"},
    {IN_RESOURCES("LimitCORE", SIZE, limit_core), SET_IN(limit_core_set),
     SIZE_OR_INFINITY(0, "one size (soft and hard limit) such as 0, 512M")},
    {IN_RESOURCES("LimitAS", SIZE, limit_as), SET_IN(limit_as_set),
     SIZE_OR_INFINITY(4096, "one size from 4K (soft and hard limit) such as 512M")},
    {IN_RESOURCES("Nice", INTEGER, nice), SET_IN(nice_set), .min = -20, .max = 19,
     .allowed = "a number from -20 (first served) to 19"},
    {IN_RESOURCES("OOMScoreAdjust", INTEGER, oom_score_adjust), SET_IN(oom_score_adjust_set),
     .min = -1000, .max = 1000, .allowed = "a number from -1000 (never killed) to 1000"},

    {IN_SANDBOX("Profile", CHOICE, profile), DEFAULT("none"), .allowed = "none, basic, strict"},
    {IN_SANDBOX("Strict", BOOL, strict), DEFAULT("no"), .allowed = "no, yes"},
    {IN_SANDBOX("NoNewPrivileges", BOOL, no_new_privileges), SET_IN(no_new_privileges_set),
     .allowed = "no, yes"},
    {IN_SANDBOX("UMask", MODE, umask), SET_IN(umask_set), .allowed = "an octal mode such as 0027"},
    {IN_SANDBOX("CapabilityBoundingSet", CAPABILITIES, capability_bounding_set),
     SOME_OF("CAP_NET_RAW")},
    {IN_SANDBOX("AmbientCapabilities", CAPABILITIES, ambient_capabilities),
     SOME_OF("CAP_NET_RAW")},
    {IN_SANDBOX("SystemCallFilter", SYSCALLS, system_call_filter),
     .allowed = "names of system calls and of systemd's groups such as @system-service; all others "
                "with ~ in front of the line, each with \":\" and an error if wanted"},
    {IN_SANDBOX("SystemCallErrorNumber", ERROR, system_call_error_number), DEFAULT("kill"),
     .allowed = "kill, the name of an error such as EPERM, or its number up to 4095"},
    {IN_SANDBOX("SystemCallLog", SYSCALLS, system_call_log),
     .allowed = "names of system calls and of systemd's groups such as @system-service; all others "
                "with ~ in front of the line"},
    {IN_SANDBOX("SystemCallArchitectures", ARCHITECTURES, system_call_architectures),
     .allowed = "native"},
    {IN_SANDBOX("RestrictAddressFamilies", FAMILIES, restrict_address_families),
     SOME_OF("AF_UNIX")},
    {IN_SANDBOX("RestrictNamespaces", NAMESPACES, restrict_namespaces),
     .allowed = "yes (none may be used), no, or those that may be used: cgroup, ipc, net, mnt, "
                "pid, user, uts, all others with ~ in front of the line"},
    {IN_SANDBOX("MemoryDenyWriteExecute", BOOL, memory_deny_write_execute), DEFAULT("no"),
     .allowed = "no, yes"},
    {IN_SANDBOX("ProtectSystem", CHOICE, protect_system), DEFAULT("no"),
     .allowed = "no, yes, full, strict"},
    {IN_SANDBOX("ProtectHome", CHOICE, protect_home), DEFAULT("no"),
     .allowed = "no, yes, read-only, tmpfs"},
    {IN_SANDBOX("ReadOnlyPaths", PATHS, read_only_paths), PLACES},
    {IN_SANDBOX("ReadWritePaths", PATHS, read_write_paths), PLACES},
    {IN_SANDBOX("InaccessiblePaths", PATHS, inaccessible_paths), PLACES},
    {IN_SANDBOX("PrivateTmp", CHOICE, private_tmp), DEFAULT("no"), .allowed = "no, yes, job"},
    {IN_SANDBOX("PrivateNetwork", BOOL, private_network), DEFAULT("no"), .allowed = "no, yes"},
    {IN_SANDBOX("PrivatePIDs", BOOL, private_pids), DEFAULT("no"), .allowed = "no, yes"},
    {IN_SANDBOX("PrivateIPC", BOOL, private_ipc), DEFAULT("no"), .allowed = "no, yes"},
    {IN_SANDBOX("PrivateRoot", BOOL, private_root), DEFAULT("no"), .allowed = "no, yes"},
    {IN_SANDBOX("ProtectProc", CHOICE, protect_proc), DEFAULT("default"),
     .allowed = "default, noaccess, invisible, ptraceable"},
    {IN_SANDBOX("ProcSubset", CHOICE, proc_subset), DEFAULT("all"), .allowed = "all, pid"},
};

static const struct config_key DAEMON_KEYS[] = {
    {IN_DAEMON("AdminGroup", TEXT, admin_group), EXISTING("group")},
    {IN_DAEMON("ReadGroup", TEXT, read_group), EXISTING("group")},
    {IN_DAEMON("ClientsMax", UNSIGNED, clients_max), DEFAULT("256"), FROM(1, "", 65536)},
    {IN_DAEMON("ClientIdleSec", TIMEOUT, client_idle), DEFAULT("infinity"), TIME_OR_INFINITY},
    {IN_DAEMON("ClientRequestSec", TIME, client_request), DEFAULT("30s"), .min = USEC_PER_MSEC,
     .max = 3600 * USEC_PER_SEC, .allowed = "a time from 1ms to 1h"},
    {IN_DAEMON("DeathsMax", UNSIGNED, deaths_max), DEFAULT("1000"), FROM(1, "", 1000000)},
    {IN_DAEMON("DeadLettersMax", COUNT, dead_letters_max), DEFAULT("10000"),
     FROM(0, " (keep none)", 1000000)},
    {IN_DAEMON("DeadLettersMemoryMax", SIZE, dead_letters_memory_max), DEFAULT("64M"),
     SIZE_FROM(0, ANY_SIZE)},
    {IN_DAEMON("StateDirectory", PATH, state_directory), .allowed = "an absolute path"},
    {IN_DAEMON("TimeoutStopSec", TIMEOUT, timeout_stop), DEFAULT("30s"), TIME_OR_INFINITY},
    {IN_DAEMON("LogLevel", LOG_LEVEL, log_level), DEFAULT("info"),
     .allowed = "error, warning, notice, info, debug"},
    {IN_DAEMON("SpinUsec", TIME, spin), DEFAULT("50us"), SPIN},
};

/* Their types are those of enum exchange_kind. */
static const struct config_key EXCHANGE_KEYS[] = {
    {IN_EXCHANGE("Description", TEXT, description), DEFAULT(""), .allowed = "any text"},
    {IN_EXCHANGE("MaySubscribe", GROUPS, may_subscribe),
     .allowed = "names of groups, separated by spaces"},
    {IN_EXCHANGE("Type", CHOICE, type), DEFAULT("typed-multi"),
     .allowed = "single, typed-single, typed-multi, routing-key, pattern"},
};

static const struct config_key LIMIT_KEYS[] = {
    {IN_LIMIT("Description", TEXT, description), DEFAULT(""), .allowed = "any text"},
    {IN_LIMIT("Rate", RATE, bounds.rate), A_RATE},
    {IN_LIMIT("Burst", COUNT, bounds.burst), A_BURST},
    {IN_LIMIT("Running", COUNT, bounds.running), A_RUNNING},
};

static const struct config_key SCHEDULE_KEYS[] = {
    {IN_SCHEDULE("Description", TEXT, description), DEFAULT(""), .allowed = "any text"},
    {IN_SCHEDULE("OnCalendar", CALENDAR, on_calendar),
     .allowed = "a calendar expression such as \"Mon..Fri 09:00 Europe/Berlin\", daily, or the five "
                "fields of cron"},
    {IN_SCHEDULE("OnUnitActiveSec", TIME, on_active), INTERVAL},
    {IN_SCHEDULE("OnUnitInactiveSec", TIME, on_inactive), INTERVAL},
    {IN_SCHEDULE("Until", MOMENT, until),
     .allowed = "a moment such as \"2026-12-31 18:00 Europe/Berlin\""},
    {IN_SCHEDULE("RandomizedDelaySec", TIME, randomized_delay), DEFAULT("0"),
     TIME_TO(JOB_BACKOFF_MAX, ", up to 1d")},
    {IN_SCHEDULE("CatchUp", CHOICE, catch_up), DEFAULT("last"), .allowed = "last, all, none"},
    {IN_SCHEDULE("CatchUpWithinSec", TIME, catch_up_within), DEFAULT("1d"), TIME_OR_INFINITY},
    {IN_SCHEDULE("Overlap", CHOICE, overlap), DEFAULT("skip"),
     .allowed = "skip, buffer-one, buffer, cancel, allow"},
    {IN_SCHEDULE("PauseOnFailure", UNSIGNED, pause_on_failure), DEFAULT("0"),
     FROM(0, " (never)", 1000000)},

    {IN_JOB("Group", TEXT, group), .allowed = "the name of a group"},
    {IN_JOB("Key", TEXT, key), .allowed = "up to 255 bytes"},
    {IN_JOB("Data", TEXT, data), .allowed = "any text"},
    {IN_JOB("DataFile", PATH, data_file), .allowed = "the absolute path of a file"},
    {IN_JOB("Priority", UNSIGNED, priority), FROM(0, " (first)", 63)},
    {IN_JOB("MaxRetries", UNSIGNED, max_retries), .max = JOB_RETRIES_MAX,
     .allowed = "a number from 0 to 1000000"},
    {IN_JOB("TimeoutSec", TIMEOUT, timeout), SET_IN_SCHEDULE(timeout_set), TIME_OR_INFINITY},
    {IN_JOB("BackoffMinSec", TIME, backoff_min), SET_IN_SCHEDULE(backoff_min_set),
     TIME_TO(JOB_BACKOFF_MAX, ", up to 1d")},
    {IN_JOB("BackoffMaxSec", TIME, backoff_max), SET_IN_SCHEDULE(backoff_max_set),
     TIME_TO(JOB_BACKOFF_MAX, ", up to 1d")},
    {IN_JOB("DeadlineSec", TIMEOUT, deadline), DEFAULT("infinity"), TIME_OR_INFINITY},
};
/* clang-format on */

const struct config_schema CONFIG_GROUP_SCHEMA = {GROUP_KEYS, ELEMENTS(GROUP_KEYS)};
const struct config_schema CONFIG_DAEMON_SCHEMA = {DAEMON_KEYS, ELEMENTS(DAEMON_KEYS)};
const struct config_schema CONFIG_EXCHANGE_SCHEMA = {EXCHANGE_KEYS, ELEMENTS(EXCHANGE_KEYS)};
const struct config_schema CONFIG_LIMIT_SCHEMA = {LIMIT_KEYS, ELEMENTS(LIMIT_KEYS)};
const struct config_schema CONFIG_SCHEDULE_SCHEMA = {SCHEDULE_KEYS, ELEMENTS(SCHEDULE_KEYS)};

const struct config_key *config_schema_find(const struct config_schema *schema, const char *name)
{
    for (size_t i = 0; i < schema->n_keys; i++)
        if (strcmp(schema->keys[i].name, name) == 0)
            return &schema->keys[i];
    return NULL;
}

static void *field_of(const struct config_key *key, const void *object)
{
    return (char *)(uintptr_t)object + key->offset;
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
        return key->type->equal(field_of(key, a), field_of(key, b));
    return memcmp(field_of(key, a), field_of(key, b), key->size) == 0;
}

bool config_key_is_set(const struct config_key *key, const void *object, const void *defaults)
{
    return !key_equal(key, object, defaults);
}

bool config_schema_equal(const struct config_schema *schema, const void *a, const void *b,
                         bool only_process)
{
    for (size_t i = 0; i < schema->n_keys; i++)
        if (!(only_process && schema->keys[i].live) && !key_equal(&schema->keys[i], a, b))
            return false;
    return true;
}

static uint64_t digest_value(const struct config_key *key, const void *object, uint64_t digest)
{
    if (!is_set(key, object))
        return digest;
    if (key->type->digest)
        return key->type->digest(digest, field_of(key, object));
    return digest_bytes(digest, field_of(key, object), key->size);
}

uint64_t config_schema_digest(const struct config_schema *schema, const void *object,
                              const void *defaults, uint64_t digest)
{
    for (size_t i = 0; i < schema->n_keys; i++) {
        const struct config_key *key = &schema->keys[i];

        if (key->live || key_equal(key, object, defaults))
            continue;
        digest = digest_bytes(digest, key->name, strlen(key->name) + 1);
        digest = digest_value(key, object, digest);
    }
    return digest;
}

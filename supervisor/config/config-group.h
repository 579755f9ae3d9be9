/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The contents of NAME.group and its drop-ins. Comments give unit, bounds and default;
 * troupe.group(5) has the meaning.
 */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* The order of each enumeration is that of its names in keys.c. */

#define CONFIG_GROUP_NAME_MAX 64
#define CONFIG_UNSET          UINT64_MAX /* sizes and counts that were not given, or "infinity" */

enum config_group_type {
    CONFIG_ACTOR,
    CONFIG_SERVICE, /* kept alive, ready when started */
    CONFIG_NOTIFY,  /* a service that is ready when it says READY=1 */
};

enum config_cells {
    CONFIG_CELLS_NONE,   /* one for all jobs */
    CONFIG_CELLS_BY_KEY, /* one for each key */
};

enum config_template {
    CONFIG_TEMPLATE_NO,
    CONFIG_TEMPLATE_SLOT, /* one for each slot */
};

enum config_restart {
    CONFIG_RESTART_ON_FAILURE,
    CONFIG_RESTART_ALWAYS,
    CONFIG_RESTART_NO,
};

/* Which processes of a service get KillSignal=. */
enum config_kill_mode {
    CONFIG_KILL_CONTROL_GROUP, /* all */
    CONFIG_KILL_MIXED,         /* the main process; the others get SIGKILL when it ends */
    CONFIG_KILL_PROCESS,       /* like CONFIG_KILL_MIXED */
};

/* Ways in which a process ends. */
struct config_statuses {
    uint64_t codes[4]; /* bit n % 64 of codes[n / 64]: exit status n */
    uint64_t signals;  /* bit n - 1: signal n */
};

/* The treatment of a message for a full mailbox. */
enum config_overflow {
    CONFIG_OVERFLOW_REJECT,
    CONFIG_OVERFLOW_BLOCK,
    CONFIG_OVERFLOW_DROP_OLDEST,
};

/* The treatment of the message that a dead worker was handling. */
enum config_on_crash {
    CONFIG_ON_CRASH_RETRY,
    CONFIG_ON_CRASH_ERROR_QUEUE,
};

/* What makes a job unique whose submitter gives it no unique key. */
enum config_unique {
    CONFIG_UNIQUE_NO,
    CONFIG_UNIQUE_PAYLOAD,
    CONFIG_UNIQUE_KEY, /* the routing key */
};

enum config_unique_until {
    CONFIG_UNIQUE_UNTIL_END,
    CONFIG_UNIQUE_UNTIL_START, /* of its first attempt */
};

/* Size=: how many workers a pool has, both the same unless the pool is elastic. */
struct config_size {
    unsigned low, high;
};

/* Rate=: so many jobs begin in each period. */
struct config_rate {
    uint64_t n; /* 0 = no limit */
    usec_t period;
};

/* The numbers of a limit. */
struct config_bounds {
    struct config_rate rate; /* no limit */
    uint64_t burst;          /* 1 */
    uint64_t running;        /* CONFIG_UNSET = no limit */
};

#define CONFIG_USES_MAX 8 /* limits that a group uses */

enum config_limit_per {
    CONFIG_LIMIT_PER_GROUP,
    CONFIG_LIMIT_PER_KEY, /* routing key */
};

enum config_profile {
    CONFIG_PROFILE_NONE,
    CONFIG_PROFILE_BASIC,
    CONFIG_PROFILE_STRICT,
};

enum config_protect_system {
    CONFIG_PROTECT_SYSTEM_NO,
    CONFIG_PROTECT_SYSTEM_YES,
    CONFIG_PROTECT_SYSTEM_FULL,
    CONFIG_PROTECT_SYSTEM_STRICT,
};

enum config_protect_home {
    CONFIG_PROTECT_HOME_NO,
    CONFIG_PROTECT_HOME_YES,
    CONFIG_PROTECT_HOME_READ_ONLY,
    CONFIG_PROTECT_HOME_TMPFS,
};

enum config_private_tmp {
    CONFIG_PRIVATE_TMP_NO,
    CONFIG_PRIVATE_TMP_YES,
    CONFIG_PRIVATE_TMP_JOB, /* empty before each job */
};

/* The order is that of enum sandbox_hidepid. */
enum config_protect_proc {
    CONFIG_PROTECT_PROC_DEFAULT,
    CONFIG_PROTECT_PROC_NOACCESS,
    CONFIG_PROTECT_PROC_INVISIBLE,
    CONFIG_PROTECT_PROC_PTRACEABLE,
};

enum config_proc_subset {
    CONFIG_PROC_SUBSET_ALL,
    CONFIG_PROC_SUBSET_PID,
};

/* A NULL-terminated vector of strings, owned. NULL = empty. */
typedef char **config_strv;

/* A list that grows, see syntax/strings.h. Zeroed = empty. */
struct config_strings {
    config_strv strings; /* NULL if nothing was ever added */
    size_t n, n_allocated;
    uint32_t *places; /* by hashes of names: the number of a string from 1 on; 0 = free */
    size_t n_places;
};

struct config_draft;
struct sandbox;
struct sandbox_files;
struct sandbox_network;

struct config_group {
    char *name; /* the file's name without ".group": [A-Za-z0-9_.@-]+, begins with a letter or digit
                 */
    char *path; /* unread: NULL = no file describes it, see group/undescribed.h */

    /* [Group] */
    char *description;
    enum config_group_type type;
    config_strv
        exec_start; /* argv, [0] absolute; systemd's quoting; "%n" group name, "%i" slot number */
    char *user, *group_name;          /* NULL = the supervisor's own */
    uid_t uid;                        /* resolved; valid if `user` */
    gid_t gid;                        /* resolved; valid if `user` or `group_name` */
    char *submit_user, *submit_group; /* SubmitUser=, SubmitGroup=; NULL = none */
    uid_t submit_uid;                 /* resolved; valid if `submit_user` */
    gid_t submit_gid;                 /* resolved; valid if `submit_group` */
    struct config_strings may_submit; /* MaySubmit=: groups in which its workers create jobs */
    char *working_directory;
    struct config_strings environment; /* KEY=VALUE, Environment= and EnvironmentFile= merged */
    struct config_strings environment_files; /* as written; "-" in front: may be missing */
    struct config_strings after;
    bool autostart; /* yes */

    /* [Pool] */
    struct config_size size; /* up to 4096 */
    usec_t target_wait;      /* 1 s; of elastic pools, as below */
    usec_t idle;             /* 30 s; USEC_INFINITY = workers stay */
    /* In each 2 s, as in enum pressure_kind; USEC_INFINITY = any (default). */
    usec_t memory_pressure, cpu_pressure, io_pressure;
    unsigned pool_max; /* workers of all cells, 1 … 4096; 0 = no limit (default) */
    enum config_cells cells;
    enum config_template template;   /* which process forks workers; default no */
    usec_t template_max_age;         /* USEC_INFINITY = no renewal */
    unsigned spare;                  /* places that have a spare, 0 … 4096 */
    uint64_t cells_max;              /* 1 … 100000; default 1000 */
    uint64_t cells_queue_memory_max; /* bytes, of all cells together; default 1G */
    usec_t cell_idle;                /* 5 min; USEC_INFINITY = cells stay */
    unsigned prefetch;               /* jobs in one worker's hand, 1 … 64; default 1 */
    unsigned max_jobs;               /* 0 = no recycling */
    uint64_t max_memory;             /* growth in bytes; CONFIG_UNSET = no recycling */
    usec_t max_age;                  /* USEC_INFINITY = no recycling */
    unsigned batch_max; /* messages of the pool in one worker's hand, 1 … 1000; default 10 */

    /* [Jobs] */
    bool durable;                    /* jobs are on disk; default no */
    uint64_t queue_max;              /* default 10000 */
    uint64_t queue_memory_max;       /* bytes; default 256M */
    usec_t timeout;                  /* USEC_INFINITY = none (default) */
    unsigned max_retries;            /* default 3 */
    usec_t backoff_min, backoff_max; /* 100 ms, 30 s; at most JOB_BACKOFF_MAX */
    double backoff_random;           /* 0.2 */
    uint64_t result_max;             /* bytes of one result; 64M */
    usec_t result_ttl;               /* 1 h */
    uint64_t results_max;            /* 10000 */
    uint64_t results_memory_max;     /* bytes; 64M */
    usec_t history;                  /* how long ended jobs are kept; 0 = not at all (default) */
    uint64_t history_max;            /* bytes; 1G */
    bool history_payload;            /* with the beginning of the payload; default no */
    usec_t no_progress;              /* USEC_INFINITY = off (default) */
    bool retries_reset;              /* a failed attempt with a checkpoint counts as the first */
    char *on_oom;                    /* name of a group; NULL = none */
    enum config_unique unique;       /* no */
    enum config_unique_until unique_until; /* end */
    unsigned on_conflict;                  /* enum protocol_conflict, less 1; reject */

    /* [Limits] */
    struct config_bounds limits;
    struct config_strings uses; /* names of limits: NAME.limit; at most CONFIG_USES_MAX */
    enum config_limit_per rate_per, running_per; /* group */

    /* [Restart] */
    enum config_restart restart;                /* on-failure */
    struct config_statuses success, no_restart; /* of services, beside exit status 0; none */
    usec_t min, max;                            /* 100 ms, 30 s */
    double random;                              /* 0.2 */
    usec_t reset_after;                         /* 10 s */
    unsigned start_limit_burst;  /* 0 = no limit (default), at most RESTART_BURST_MAX */
    usec_t start_limit_interval; /* 10 s */

    /* [Worker] */
    usec_t timeout_start;            /* 30 s */
    usec_t timeout_stop;             /* 10 s */
    usec_t watchdog;                 /* USEC_INFINITY = off (default) */
    bool crash_stacks;               /* its processes are watched for crashes; no */
    int kill_signal;                 /* SIGTERM */
    int reload_signal;               /* -1 = none (default) */
    enum config_kill_mode kill_mode; /* control-group */
    uint32_t mailbox_size;           /* ring size, a power of two: rounded up; default 256K */
    uint32_t inline_max;             /* default 32K, at most mailbox_size / 4 */
    usec_t spin;                     /* SpinUsec=, before it sleeps; 0 = not; default 50 µs */
    uint64_t mailbox_max;            /* messages that wait for one actor; 10000 */
    uint64_t mailbox_memory_max;     /* bytes; 64M */
    enum config_overflow overflow;   /* reject */
    enum config_on_crash on_crash;   /* retry */
    unsigned message_retries;        /* 3 */
    bool syslog_level_prefix;        /* yes */
    usec_t log_rate_limit_interval;  /* 1 s; 0 = no limit */
    unsigned log_rate_limit_burst;   /* 200; 0 = no limit */

    /* [Resources]; CONFIG_UNSET = leave alone */
    uint64_t memory_max, memory_high, memory_swap_max;
    usec_t memory_reclaim; /* of a worker that has been idle for so long */
    uint64_t cpu_weight;
    uint64_t cpu_quota_percent;
    char *allowed_cpus; /* as values_cpus() makes it; NULL = all */
    uint64_t io_weight;
    uint64_t tasks_max;
    uint64_t limit_nofile, limit_core,
        limit_as; /* bytes, a count for files; RLIM_INFINITY = none */
    bool limit_nofile_set, limit_core_set, limit_as_set;
    int nice; /* valid if nice_set */
    bool nice_set;
    int oom_score_adjust; /* valid if oom_score_adjust_set */
    bool oom_score_adjust_set;

    /* [Sandbox]; see sandbox/sandbox-words.h for the lists */
    enum config_profile profile; /* none; its keys are set when all files are read */
    bool strict;                 /* no start if something cannot be enforced */
    bool no_new_privileges; /* valid if no_new_privileges_set; default: whether there is a user */
    bool no_new_privileges_set;
    unsigned umask; /* valid if umask_set */
    bool umask_set;
    struct config_strings capability_bounding_set; /* default: none of them, or all without user */
    struct config_strings ambient_capabilities;
    struct config_strings system_call_filter;
    int system_call_error_number;          /* 0 = killed (default) */
    struct config_strings system_call_log; /* made and recorded */
    struct config_strings system_call_architectures;
    struct config_strings restrict_address_families; /* empty = all */
    struct config_strings restrict_namespaces;       /* those allowed; empty = all */
    bool memory_deny_write_execute;
    enum config_protect_system protect_system; /* no */
    enum config_protect_home protect_home;     /* no */
    struct config_strings read_only_paths;     /* with "-" in front: may be missing */
    struct config_strings read_write_paths, inaccessible_paths;
    enum config_private_tmp private_tmp; /* no */
    bool private_network;
    bool private_pids, private_ipc, private_root;
    enum config_protect_proc protect_proc; /* default */
    enum config_proc_subset proc_subset;   /* all */

    /* Set by config_resolve(). */
    struct sandbox *sandbox;             /* NULL = none */
    struct sandbox_files *sandbox_files; /* NULL = all; its paths are those above */
    struct sandbox_network *network;     /* NULL = the supervisor's */
    gid_t *groups;                       /* supplementary ones of `user` */
    size_t n_groups;
    config_strv user_environment; /* HOME and the like, of `user` */
    uint32_t process_digest;      /* what processes are started with; 0 = not resolved */
    char *fault;                  /* why it cannot be started; NULL = it can */
    bool unread;  /* `fault` is a mistake in its files: only some of their keys are known */
    bool missing; /* no file describes it any more: this is its previous configuration */
    struct config_group *next;  /* `unread`, from the files as they are now, while this is the
                                   previous configuration; owned; NULL = the files say this */
    struct config_draft *draft; /* where its keys were given; owned; NULL = in no file */
};

/* Whether the size of its pools follows their work. */
static inline bool config_is_elastic(const struct config_group *group)
{
    return group->size.low < group->size.high;
}

/* Tells sizes apart, also for the next supervisor. */
static inline uint64_t config_size_number(struct config_size size)
{
    return size.low < size.high ? (uint64_t)size.high << 32 | size.low : size.low;
}

/*
 * Makes a group with every key at its default, `exec_start` and `path` NULL. Returns 0, -EINVAL
 * (invalid name) or -ENOMEM. End it with config_group_free().
 */
int config_defaults(struct config_group **ret, const char *name);

struct config_group *config_group_free(struct config_group *group); /* NULL allowed; returns NULL */

/*
 * Whether both start their processes alike (program, user, directory, environment, mailbox,
 * watchdog, resources …). All other keys take effect without a restart.
 */
bool config_group_same_process(const struct config_group *a, const struct config_group *b);

/* Sets `process_digest`, which is the same in the next supervisor if processes are started alike.
 * Returns 0 or -ENOMEM. */
int config_group_set_digest(struct config_group *group);

/* Whether both are equal except for the path. */
bool config_group_equal(const struct config_group *a, const struct config_group *b);

/*
 * Makes the command line of one slot: `exec_start` with its specifiers expanded. Returns 0,
 * -ENOMEM, or -EINVAL for a specifier that config_load() would have refused. strv_free() ends
 * `*ret`.
 */
int config_expand_argv(const struct config_group *group, unsigned slot, config_strv *ret);

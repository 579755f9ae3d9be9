/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Configuration as structs: the daemon's (troupe.conf), one per group (NAME.group + drop-ins) and
 * one per exchange (NAME.exchange).
 * Read whole, checked whole: all problems of all files are collected, each with file, line and what
 * is allowed, and a configuration with a problem is never used.
 */

#include "../shared/clock.h"
#include "exchange.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define CONFIG_GROUP_NAME_MAX 64
#define CONFIG_DIRECTORY      "/etc/troupe"
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

enum config_strategy {
    CONFIG_ONE_FOR_ONE,
    CONFIG_ONE_FOR_ALL,
    CONFIG_REST_FOR_ONE,
};

enum config_restart {
    CONFIG_RESTART_ON_FAILURE,
    CONFIG_RESTART_ALWAYS,
    CONFIG_RESTART_NO,
};

/* What becomes of a message for which a mailbox has no room. */
enum config_overflow {
    CONFIG_OVERFLOW_REJECT,
    CONFIG_OVERFLOW_BLOCK,
    CONFIG_OVERFLOW_DROP_OLDEST,
};

/* What becomes of the message that a worker had in hand when it died. */
enum config_on_crash {
    CONFIG_ON_CRASH_RETRY,
    CONFIG_ON_CRASH_ERROR_QUEUE,
};

/* A NULL-terminated vector of strings, owned. NULL = empty. */
typedef char **config_strv;

struct config_group {
    char *name; /* the file's name without ".group": [A-Za-z0-9_.@-]+, begins with a letter or digit
                 */
    char *path;

    /* [Group] */
    char *description;
    enum config_group_type type;
    config_strv
        exec_start; /* argv, [0] absolute; systemd's quoting; "%n" group name, "%i" slot number */
    char *user, *group_name; /* NULL = the supervisor's own */
    uid_t uid;               /* resolved; valid if `user` */
    gid_t gid;               /* resolved; valid if `user` or `group_name` */
    char *working_directory;
    config_strv environment;       /* KEY=VALUE, Environment= and EnvironmentFile= merged */
    config_strv environment_files; /* as written; "-" in front: may be missing */
    config_strv after;

    /* [Pool] */
    unsigned size; /* 1 … 4096 */
    enum config_cells cells;
    uint64_t cells_max;              /* 1 … 100000; default 1000 */
    uint64_t cells_queue_memory_max; /* bytes, of all cells together; default 1G */
    usec_t cell_idle;                /* 5 min; USEC_INFINITY = cells stay */
    unsigned prefetch;               /* jobs in one worker's hand, 1 … 64; default 1 */
    unsigned max_jobs;               /* 0 = no recycling */
    uint64_t max_memory;             /* growth in bytes; CONFIG_UNSET = no recycling */
    usec_t max_age;                  /* USEC_INFINITY = no recycling */
    unsigned batch_max; /* messages of the pool in one worker's hand, 1 … 1000; default 10 */

    /* [Jobs] */
    uint64_t queue_max;              /* default 10000 */
    uint64_t queue_memory_max;       /* bytes; default 256M */
    usec_t timeout;                  /* USEC_INFINITY = none (default) */
    unsigned max_retries;            /* default 3 */
    usec_t backoff_min, backoff_max; /* 100 ms, 30 s */
    double backoff_random;           /* 0.2 */
    usec_t result_ttl;               /* 1 h */
    uint64_t results_max;            /* 10000 */
    usec_t no_progress;              /* USEC_INFINITY = off (default) */

    /* [Restart] */
    enum config_restart restart;   /* on-failure */
    usec_t min, max;               /* 100 ms, 30 s */
    double random;                 /* 0.2 */
    usec_t reset_after;            /* 10 s */
    unsigned start_limit_burst;    /* 5; 0 = no limit */
    usec_t start_limit_interval;   /* 10 s */
    enum config_strategy strategy; /* one-for-one */

    /* [Worker] */
    usec_t timeout_start;          /* 90 s -> 30 s default */
    usec_t timeout_stop;           /* 10 s */
    usec_t watchdog;               /* USEC_INFINITY = off (default) */
    int kill_signal;               /* SIGTERM */
    uint32_t mailbox_size;         /* ring size, a power of two: rounded up; default 256K */
    uint32_t inline_max;           /* default 32K, at most mailbox_size / 4 */
    usec_t spin;                   /* SpinUsec=, before it sleeps; 0 = not; default 50 µs */
    uint64_t mailbox_max;          /* letters that wait for one actor; 10000 */
    uint64_t mailbox_memory_max;   /* bytes; 64M */
    enum config_overflow overflow; /* reject */
    enum config_on_crash on_crash; /* retry */
    unsigned message_retries;      /* 3 */

    /* [Resources]; CONFIG_UNSET = leave alone */
    uint64_t memory_max, memory_high;
    uint64_t cpu_weight;
    uint64_t cpu_quota_percent;
    uint64_t tasks_max;
    uint64_t limit_nofile, limit_core,
        limit_as; /* bytes, a count for files; RLIM_INFINITY = none */
    bool limit_nofile_set, limit_core_set, limit_as_set;
    int nice; /* valid if nice_set */
    bool nice_set;
    int oom_score_adjust; /* valid if oom_score_adjust_set */
    bool oom_score_adjust_set;
};

/* troupe.conf, section [Supervisor]. */
struct config_daemon {
    char *admin_group;                /* AdminGroup=; NULL = none */
    gid_t admin_gid;                  /* valid if admin_group */
    unsigned clients_max;             /* ClientsMax=, 256 */
    usec_t client_idle;               /* ClientIdleSec=, infinity */
    unsigned deaths_max;              /* DeathsMax=, death reports kept, 1000 */
    uint64_t dead_letters_max;        /* DeadLettersMax=, in each of the two rings, 10000 */
    uint64_t dead_letters_memory_max; /* DeadLettersMemoryMax= of both, bytes, 64M */
    usec_t timeout_stop;              /* TimeoutStopSec= for the shutdown as a whole, 30 s */
    int log_level;                    /* LogLevel=, enum log_level, info */
    usec_t spin;                      /* SpinUsec=, of it and attached clients, 50 µs */
};

/* NAME.exchange, section [Exchange]. */
struct config_exchange {
    char *name; /* the file's name without ".exchange": as of a group, without '@' */
    char *path;
    char *description;
    enum exchange_kind type; /* Type= */
    int wildcards;           /* Wildcards=, a truth value; no */
};

struct config {
    struct config_daemon daemon;
    struct config_group **groups; /* sorted by name */
    size_t n_groups;
    struct config_exchange **exchanges; /* sorted by name */
    size_t n_exchanges;
};

/* One thing that is wrong. */
struct config_problem {
    char *path;
    unsigned line; /* 0 = the file as a whole */
    char *text;    /* "unknown key 'Sise' in [Pool]; did you mean 'Size'?" */
};

struct config_problems {
    struct config_problem *problems;
    size_t n_problems;
};

/* clang-format off */
#define CONFIG_PROBLEMS_NULL {0}
/* clang-format on */

void config_problems_deinit(struct config_problems *problems);

enum {
    _CONFIG_E_SUCCESS,
    CONFIG_E_INVALID, /* see the problems */
};

/*
 * Reads DIRECTORY/troupe.conf (may be missing), DIRECTORY/NAME.group and
 * DIRECTORY/NAME.group.d/?*.conf (in the order of their names), and DIRECTORY/NAME.exchange. 0 with
 * `*ret`, CONFIG_E_INVALID with at least one problem, or -errno
 * (-ENOENT: no such directory). Programs are checked: missing or not executable is a problem.
 */
int config_load(struct config **ret, const char *directory, struct config_problems *problems);

/*
 * Checks one file for `troupectl verify FILE…`: troupe.conf, NAME.group (with its drop-ins), one
 * drop-in NAME.group.d/X.conf by itself, NAME.exchange, or a directory as config_load() does. 0 =
 * nothing is wrong, CONFIG_E_INVALID with at least one problem, or -errno (-ENOENT: no such file).
 * Groups named in After= are looked for beside the file and in CONFIG_DIRECTORY.
 */
int config_verify_file(const char *path, struct config_problems *problems);

struct config *config_free(struct config *config); /* NULL allowed; returns NULL */

/* Takes a group out of the configuration: the caller owns it afterwards. */
struct config_group *config_take_group(struct config *config, size_t index);
struct config_group *config_group_free(struct config_group *group);

/*
 * A group called `name` as if its file were empty: every key at its default, `exec_start` and
 * `path` NULL. 0, -EINVAL for an impossible name, or -ENOMEM. To be ended with config_group_free().
 */
int config_defaults(struct config_group **ret, const char *name);

/*
 * Whether both would run the same processes: what a process is started with (program, user,
 * directory, environment, mailbox, watchdog, resources …) is equal. What only the supervisor looks
 * at (description, order, pool size, job and restart policies, time-outs, stop signal) takes effect
 * without a restart.
 */
bool config_group_same_process(const struct config_group *a, const struct config_group *b);

/* Whether nothing at all differs but the path. */
bool config_group_equal(const struct config_group *a, const struct config_group *b);

/*
 * The command line of one slot: `exec_start` with its specifiers expanded. 0 or -ENOMEM (-EINVAL
 * for a specifier that config_load() would have refused). `*ret` is to be ended with
 * config_argv_free().
 */
int config_expand_argv(const struct config_group *group, unsigned slot, char ***ret);
char **config_argv_free(char **argv); /* NULL allowed; returns NULL */

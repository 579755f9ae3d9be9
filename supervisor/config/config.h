/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The configuration: troupe.conf, groups (NAME.group and drop-ins), exchanges (NAME.exchange),
 * schedules (NAME.schedule) and limits (NAME.limit). Reading collects the problems of all files.
 */

#include "shared/base/clock.h"
#include "shared/protocol/exchange-kind.h"
#include "supervisor/config/config-file.h"
#include "supervisor/config/config-group.h"
#include "supervisor/config/config-limit.h"
#include "supervisor/config/config-schedule.h"
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CONFIG_DIRECTORY   "/etc/troupe"
#define CONFIG_DAEMON_FILE "troupe.conf" /* in it */
/* StateDirectory=, unless the service manager names one. */
#define CONFIG_STATE_DIRECTORY "/var/lib/troupe"

/* troupe.conf, section [Supervisor]. */
struct config_daemon {
    char *admin_group;                /* AdminGroup=; NULL = none */
    gid_t admin_gid;                  /* valid if admin_group */
    char *read_group;                 /* ReadGroup=; NULL = none */
    gid_t read_gid;                   /* valid if read_group */
    unsigned clients_max;             /* ClientsMax=, 256 */
    usec_t client_idle;               /* ClientIdleSec=, infinity */
    usec_t client_request;            /* ClientRequestSec=, 30 s */
    unsigned deaths_max;              /* DeathsMax=, death reports kept, 1000 */
    uint64_t dead_letters_max;        /* DeadLettersMax=, in each of the two rings, 10000 */
    uint64_t dead_letters_memory_max; /* DeadLettersMemoryMax= of both, bytes, 64M */
    char *state_directory;            /* StateDirectory=; NULL = unset */
    usec_t timeout_stop;              /* TimeoutStopSec= for the shutdown as a whole, 30 s */
    int log_level;                    /* LogLevel=, enum log_level, info */
    usec_t spin;                      /* SpinUsec=, of it and attached clients, 50 µs */
};

/* NAME.exchange, section [Exchange]. */
struct config_exchange {
    CONFIG_FILE_MEMBERS
    char *description;
    enum exchange_kind type;             /* Type= */
    struct config_strings may_subscribe; /* MaySubscribe=: names of groups */
};

struct config_draft;

struct config {
    struct config_daemon daemon;
    struct config_draft *daemon_draft; /* places of its keys */
    struct config_group **groups;      /* sorted by name */
    size_t n_groups;
    struct config_files files[_CONFIG_N_KINDS];
};

/* One problem. */
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
 * Reads a directory: troupe.conf (may be missing), NAME.group, NAME.group.d/?*.conf (in the order
 * of their names), NAME.exchange, NAME.schedule, NAME.limit. Returns 0, CONFIG_E_INVALID with at
 * least one problem, or -errno. With CONFIG_E_INVALID, groups with a problem are `unread` in
 * `*ret`, and exchanges, schedules and limits with a problem are missing. config_resolve()
 * completes `*ret`, which the caller frees.
 */
int config_read(struct config **ret, const char *directory, struct config_problems *problems);

/* Removes the files of this kind that are `broken`. */
void config_remove_broken(struct config *config, enum config_kind kind);

/*
 * Reads only one group's files, and checks its references to other groups. Returns 0 with `*ret`,
 * which the caller frees, and which is `unread` if the files have a mistake; or -errno.
 */
int config_read_group_alone(const char *path, struct config_group **ret);

/*
 * Makes a group from `text`, which is an earlier config_draft.text. `path` is where its file is, or
 * was. Returns 0 with `*ret`, which the caller frees; 0 with NULL if this version does not
 * understand the text; -EINVAL (no group can have the name), or -ENOMEM.
 */
int config_recall_group(const char *name, const char *path, const char *text, size_t size,
                        struct config_group **ret);

/* Marks a group as `unread` if it has another Type= or Cells= than `before`, its configuration so
 * far: these cannot change while the group runs. */
void config_refuse_other_kind(const struct config_group *before, struct config_group *group);

/* Adds a group of a new name, and takes it over on success. Returns 0 or -ENOMEM. */
int config_add_group(struct config *config, struct config_group *group);
/* Returns the group of this name, or NULL. */
const struct config_group *config_find_group(const struct config *config, const char *name);

/* A configuration without groups, with the defaults of troupe.conf. Returns 0 or -ENOMEM. */
int config_empty(struct config **ret);

#define CONFIG_PROBLEM_MAX (PATH_MAX + 1024)
/* Writes "FILE:LINE: TEXT", cut to fit. */
void config_problem_print(char *buffer, size_t size, const struct config_problem *problem);

/* Returns whether the problem is in that file or its drop-ins. */
bool config_problem_is_of(const struct config_problem *problem, const char *directory,
                          const char *name, const char *suffix);

/* Returns the group whose files have the problem, or NULL. */
const struct config_group *config_group_of_problem(const struct config *config,
                                                   const char *directory,
                                                   const struct config_problem *problem);

/*
 * Reads and resolves a directory, blocking, as strictly as `troupectl verify`: a missing program,
 * user or file is also a problem. Returns 0 with `*ret`, CONFIG_E_INVALID, or -errno.
 */
int config_load(struct config **ret, const char *directory, struct config_problems *problems);

/*
 * Checks a file for `troupectl verify`: troupe.conf, NAME.group (with its drop-ins), a drop-in by
 * itself, NAME.exchange, NAME.schedule, NAME.limit, or a directory as config_load() does. Returns
 * 0, CONFIG_E_INVALID, or -errno. Looks for groups named in After= beside the file and in
 * CONFIG_DIRECTORY.
 */
int config_verify_file(const char *path, struct config_problems *problems);

struct config *config_free(struct config *config); /* NULL allowed; returns NULL */

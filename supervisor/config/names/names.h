/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Looks up users, groups and files by name, and compiles filters. Name services (LDAP) and file
 * servers may block, and compiling is slow, so a child process does it, and is killed when it takes
 * too long. All that is wanted goes into one table, which then holds the results.
 */

#include "shared/base/clock.h"
#include "supervisor/config/config-group.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum names_kind {
    NAMES_USER,
    NAMES_GROUP,
    NAMES_PROGRAM,         /* this process is to execute it: a path, or a name on NAMES_PATH */
    NAMES_PROGRAM_OF_USER, /* another user is */
    NAMES_DIRECTORY,
    NAMES_FILE,   /* to be read */
    NAMES_FILTER, /* to be compiled: its settings (sandbox/filter.h) */
    _NAMES_N_KINDS,
};

/* Where systemd looks for a program given by name alone. */
#define NAMES_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct name {
    enum names_kind kind;
    char *wanted;  /* as it was asked for: a name, a number, or a path */
    bool known;    /* what follows is */
    int error;     /* errno; 0 = found; ENOENT = there is none; ETIMEDOUT = no answer in time */
    char *name;    /* the name service's own; a program's path; what a file contains;
                    * a filter's program */
    size_t size;   /* of what a file contains, or of a program: no NUL follows */
    uid_t uid;     /* of a user */
    gid_t gid;     /* of a group; of a user, its primary one */
    gid_t *groups; /* supplementary ones of a user, as at login */
    size_t n_groups;
    config_strv environment; /* of a user: USER, LOGNAME, HOME and SHELL, as systemd sets them */
};

struct names {
    struct name *names;
    size_t n_names;
    size_t next;  /* being looked up, while there is a process */
    pid_t pid;    /* 0 = none */
    int fd;       /* what it writes to */
    char *buffer; /* an answer that has not come whole */
    size_t n_buffered;
};

/* clang-format off */
#define NAMES_NULL {.fd = -1}
/* clang-format on */

/* Time limits of one name, and of all together. */
#define NAMES_TIMEOUT     (5 * USEC_PER_SEC)
#define NAMES_TIMEOUT_ALL (20 * USEC_PER_SEC)

/* Also ends the process, if there still is one. */
void names_deinit(struct names *names);

/* Adds a name unless it is there; ignores NULL. Returns 0 or -ENOMEM. */
int names_want(struct names *names, enum names_kind kind, const char *wanted);

/* NULL if the name is NULL, was not added, or is not known. */
const struct name *names_find(const struct names *names, enum names_kind kind, const char *wanted);

/* Why a program, directory or file is unusable. `name` NULL = no answer in time. */
const char *names_fault(const struct name *name);

/* Looks all names up in this process, blocking. Returns 0 or -ENOMEM. */
int names_look_up(struct names *names);

/* The only argument of the process that looks names up, which runs this program. */
#define NAMES_ARGUMENT "--look-up-names"

/* The main function of that process: reads names from standard input. Returns an exit status. */
int names_serve(void);

/*
 * Starts a process for the unknown names, if any. Returns 0 or -errno. While names.pid is not 0,
 * the caller polls names.fd and calls names_read() when it is readable.
 */
int names_start(struct names *names);

/*
 * Takes results; the lookup has ended if names.pid is 0 afterwards. A crash of the process costs
 * only the name that it was looking up. Returns 0, or -errno (the lookup has ended).
 */
int names_read(struct names *names);

/* Gives up the current name with `error` (an errno) and continues with the next. Returns 0 or
 * -errno. */
int names_skip(struct names *names, int error);

/* Gives up all that are not known. */
void names_give_up(struct names *names);

/* Reaps the processes that have ended by now. A process that is given up may take a while for that,
 * so who runs on calls this on SIGCHLD. */
void names_reap(void);

/* Starts and waits, for at most NAMES_TIMEOUT_ALL. 0 or -errno. */
int names_wait(struct names *names);

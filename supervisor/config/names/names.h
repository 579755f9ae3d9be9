/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Users, groups and files by their names. The name service (LDAP, a network that is down) and a
 * file server may take as long as they like, so a process of its own asks them: the supervisor
 * waits for that process as it waits for everything, and ends it when it takes too long.
 *
 * Everything that is wanted goes into one table, is looked up, and is found there afterwards.
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
    NAMES_FILE, /* to be read */
};

/* Where systemd looks for a program given by name alone. */
#define NAMES_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct name {
    enum names_kind kind;
    char *wanted;  /* as it was asked for: a name, a number, or a path */
    bool known;    /* what follows is */
    int error;     /* errno; 0 = found; ENOENT = there is none; ETIMEDOUT = no answer in time */
    char *name;    /* the name service's own; a program's path; what a file contains */
    size_t size;   /* of what a file contains: no NUL follows */
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

/* How long one name may take, and all of them together. */
#define NAMES_TIMEOUT     (5 * USEC_PER_SEC)
#define NAMES_TIMEOUT_ALL (20 * USEC_PER_SEC)

/* Also ends the process, if there still is one. */
void names_deinit(struct names *names);

/* Adds one that is to be looked up, unless it is there. NULL as `wanted` is nobody. 0 or -ENOMEM.
 */
int names_want(struct names *names, enum names_kind kind, const char *wanted);

/* NULL unless it was wanted and is known; nobody and nothing (NULL) never is. */
const struct name *names_find(const struct names *names, enum names_kind kind, const char *wanted);

/* Why a program, directory or file is not as it must be. NULL as `name`: no answer in time. */
const char *names_fault(const struct name *name);

/* Looks all of them up in this process, however long it takes. 0 or -ENOMEM. */
int names_look_up(struct names *names);

/*
 * The process that looks names up executes this program with this only argument: main() then
 * returns names_serve(), which reads names from standard input and returns an exit status.
 */
#define NAMES_ARGUMENT "--look-up-names"
int names_serve(void);

/*
 * Starts a process that looks up those that are not known. 0, also if there is nothing to look up
 * (then names.pid is 0), or -errno. While names.pid is not 0 the caller waits for names.fd, and
 * calls names_read() when it is readable.
 */
int names_start(struct names *names);

/*
 * Takes what has been found; it is over when names.pid is 0 afterwards. A process that crashes
 * takes only the name along that it was looking up. 0, or -errno, and it is over.
 */
int names_read(struct names *names);

/* Gives up the one that is being looked up, for `error` (an errno), and goes on with the others. 0
 * or -errno. */
int names_skip(struct names *names, int error);

/* Gives up all that are not known. */
void names_give_up(struct names *names);

/* Starts and waits, for at most NAMES_TIMEOUT_ALL. 0 or -errno. */
int names_wait(struct names *names);

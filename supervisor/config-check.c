/* SPDX-License-Identifier: MIT */
#include "config-check.h"

#include "../shared/cleanup.h"
#include "config-problem.h"
#include "envfile.h"
#include "path.h"
#include "unitfile.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where systemd looks for a program given by name alone. */
static const char PATH[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#define X_ANYBODY (S_IXUSR | S_IXGRP | S_IXOTH)

/* ---- program ---- */

/* NULL if the supervisor, or whoever it becomes before, may be able to run it; else why not. */
static const char *fault_of_program(const char *path, bool as_other_user)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return errno == ENOENT ? "no such file" : strerror(errno);
    if (!S_ISREG(status.st_mode))
        return "not a regular file";
    /* Another user's rights are not tried out here: that there is an x bit at all has to do. */
    if (as_other_user)
        return status.st_mode & X_ANYBODY ? NULL : "not executable";
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? "not executable" : NULL;
}

/* DIRECTORY/NAME for each directory of PATH; the first one that can be run. NULL with errno. */
static char *find_program(const char *name, bool as_other_user)
{
    const char *directory = PATH;

    while (*directory) {
        size_t length = strcspn(directory, ":");
        char *path = path_join(directory, length, name, "");

        if (!path) {
            errno = ENOMEM;
            return NULL;
        }
        if (!fault_of_program(path, as_other_user))
            return path;
        free(path);
        directory += length + (directory[length] == ':');
    }
    errno = ENOENT;
    return NULL;
}

static int resolve_program(struct config_draft *draft, struct config_group *group,
                           bool as_other_user)
{
    const char *program = group->exec_start[0];
    char *path = find_program(program, as_other_user);

    if (path) {
        free(group->exec_start[0]);
        group->exec_start[0] = path;
        return 0;
    }
    if (errno != ENOENT)
        return -errno;
    return config_draft_problem(draft, "Group", "ExecStart",
                                "ExecStart=: program '%.200s' is not on the path %s", program,
                                PATH);
}

static int check_program(struct config_draft *draft, struct config_group *group)
{
    bool as_other_user = group->user && group->uid != geteuid();
    const char *fault;

    if (!group->exec_start) {
        if (config_draft_given(draft, "Group", "ExecStart"))
            return 0; /* and is wrong */
        return config_draft_problem(draft, "Group", "ExecStart",
                                    "ExecStart= is missing in [Group]: which program to run");
    }
    if (group->exec_start[0][0] != '/')
        return resolve_program(draft, group, as_other_user);
    fault = fault_of_program(group->exec_start[0], as_other_user);
    if (!fault)
        return 0;
    return config_draft_problem(draft, "Group", "ExecStart",
                                "ExecStart=: program '%.200s': %s; allowed: an executable file",
                                group->exec_start[0], fault);
}

/* ---- users and groups ---- */

/* The number that the whole text is, else -1. No user has the number 2³² - 1: it means "none". */
static int64_t number_of(const char *text)
{
    char *end;
    unsigned long number;

    if (*text < '0' || *text > '9')
        return -1;
    errno = 0;
    number = strtoul(text, &end, 10);
    return errno != 0 || *end != '\0' || number >= UINT32_MAX ? -1 : (int64_t)number;
}

/* The database's own name takes the place of a number. */
static int rename_to(char **field, const char *name)
{
    char *copy = strdup(name);

    if (!copy)
        return -ENOMEM;
    free(*field);
    *field = copy;
    return 0;
}

/* Only these say something about the name; everything else is a failure of the machine. */
static bool means_unknown(int error)
{
    return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
}

static int lookup_failed(struct config_draft *draft, const char *section, const char *key,
                         const char *what, const char *name)
{
    int error = errno;

    if (error == ENOMEM)
        return -ENOMEM;
    if (means_unknown(error))
        return config_draft_problem(draft, section, key,
                                    "%s=%.80s: unknown %s; allowed: the name or number of an "
                                    "existing %s",
                                    key, name, what, what);
    return config_draft_problem(draft, section, key, "%s=%.80s: %s cannot be looked up: %s", key,
                                name, what, strerror(error));
}

static int resolve_user(struct config_draft *draft, struct config_group *group)
{
    const struct passwd *user;
    int64_t number;

    group->uid = geteuid();
    group->gid = getegid();
    if (!group->user)
        return 0;
    number = number_of(group->user);
    errno = 0;
    user = number >= 0 ? getpwuid((uid_t)number) : getpwnam(group->user);
    if (!user)
        return lookup_failed(draft, "Group", "User", "user", group->user);
    group->uid = user->pw_uid;
    group->gid = user->pw_gid;
    return rename_to(&group->user, user->pw_name);
}

static int resolve_gid(struct config_draft *draft, const char *section, const char *key,
                       char **name, gid_t *ret)
{
    const struct group *found;
    int64_t number;

    if (!*name)
        return 0;
    number = number_of(*name);
    errno = 0;
    found = number >= 0 ? getgrgid((gid_t)number) : getgrnam(*name);
    if (!found)
        return lookup_failed(draft, section, key, "group", *name);
    *ret = found->gr_gid;
    return rename_to(name, found->gr_name);
}

/* ---- files ---- */

static int check_directory(struct config_draft *draft, const struct config_group *group)
{
    struct stat status;
    const char *fault = NULL;

    if (!group->working_directory)
        return 0;
    if (stat(group->working_directory, &status) < 0)
        fault = strerror(errno);
    else if (!S_ISDIR(status.st_mode))
        fault = "not a directory";
    if (!fault)
        return 0;
    return config_draft_problem(draft, "Group", "WorkingDirectory",
                                "WorkingDirectory=%.200s: %s; allowed: an existing directory",
                                group->working_directory, fault);
}

struct environment_reading {
    struct config_problems *problems;
    const char *path;
};

static int on_environment_problem(void *userdata, unsigned line, const char *text)
{
    struct environment_reading *reading = userdata;

    return config_problem_add(reading->problems, reading->path, line, "%s", text);
}

/* Files override Environment=, later files earlier ones, as in systemd. */
static int read_environment(struct config_draft *draft, struct config_group *group,
                            const char *file)
{
    bool optional = *file == '-';
    struct environment_reading reading = {draft->problems, optional ? file + 1 : file};
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = unitfile_read(reading.path, &text, &size);

    if (r == 0)
        return envfile_parse(text, size, &group->environment, on_environment_problem, &reading);
    if (r == -ENOMEM || (r == -ENOENT && optional))
        return r == -ENOMEM ? r : 0;
    return config_draft_problem(draft, "Group", "EnvironmentFile",
                                "EnvironmentFile=%.200s: %s; allowed: a readable file, or - in "
                                "front if it may be missing",
                                file,
                                r == UNITFILE_E_TOO_LARGE     ? "too large"
                                : r == UNITFILE_E_NOT_REGULAR ? "not a regular file"
                                                              : strerror(-r));
}

static int check_environment(struct config_draft *draft, struct config_group *group)
{
    int r = 0;

    for (size_t i = 0; r == 0 && group->environment_files && group->environment_files[i]; i++)
        r = read_environment(draft, group, group->environment_files[i]);
    return r;
}

/* ---- what must fit together ---- */

static int check_order(struct config_draft *draft, const char *section, const char *min_name,
                       usec_t min, const char *max_name, usec_t max)
{
    const char *blamed = config_draft_given(draft, section, max_name) ? max_name : min_name;

    if (min <= max)
        return 0;
    return config_draft_problem(
        draft, section, blamed,
        "%s= (%" PRIu64 " ms) is above %s= (%" PRIu64 " ms); allowed: up to %s=", min_name,
        min / USEC_PER_MSEC, max_name, max / USEC_PER_MSEC, max_name);
}

static int check_mailbox(struct config_draft *draft, struct config_group *group)
{
    uint32_t size = 1, limit;

    while (size < group->mailbox_size)
        size <<= 1;
    group->mailbox_size = size;
    limit = size / 4;
    if (group->inline_max <= limit)
        return 0;
    /* Who only asks for a small mailbox has not asked for anything impossible. */
    if (!config_draft_given(draft, "Worker", "InlineMax")) {
        group->inline_max = limit;
        return 0;
    }
    return config_draft_problem(draft, "Worker", "InlineMax",
                                "InlineMax= (%" PRIu32
                                ") is above a quarter of MailboxSize= (%" PRIu32
                                "); allowed: up to %" PRIu32,
                                group->inline_max, size, limit);
}

/* Only jobs have keys. */
static int check_cells(struct config_draft *draft, const struct config_group *group)
{
    if (group->cells == CONFIG_CELLS_NONE || group->type == CONFIG_ACTOR)
        return 0;
    return config_draft_problem(draft, "Pool", "Cells",
                                "Cells=by-key needs jobs, which a service has none of; allowed: "
                                "none, or Type=actor");
}

/* A service would be there twice, and those that die together start together. */
static int check_spare(struct config_draft *draft, const struct config_group *group)
{
    if (group->spare == 0 || (group->type == CONFIG_ACTOR && group->strategy == CONFIG_ONE_FOR_ONE))
        return 0;
    return config_draft_problem(
        draft, "Pool", "Spare",
        "Spare= is above 0, which needs Type=actor and Strategy=one-for-one; allowed: 0");
}

int config_check_group(struct config_draft *draft, struct config_group *group)
{
    int r = resolve_user(draft, group);

    if (r == 0)
        r = resolve_gid(draft, "Group", "Group", &group->group_name, &group->gid);
    if (r == 0)
        r = check_program(draft, group);
    if (r == 0)
        r = check_directory(draft, group);
    if (r == 0)
        r = check_environment(draft, group);
    if (r == 0)
        r = check_order(draft, "Jobs", "BackoffMinSec", group->backoff_min, "BackoffMaxSec",
                        group->backoff_max);
    if (r == 0)
        r = check_order(draft, "Restart", "MinSec", group->min, "MaxSec", group->max);
    if (r == 0)
        r = check_mailbox(draft, group);
    if (r == 0)
        r = check_cells(draft, group);
    if (r == 0)
        r = check_spare(draft, group);
    return r;
}

int config_check_daemon(struct config_draft *draft, struct config_daemon *daemon)
{
    return resolve_gid(draft, "Supervisor", "AdminGroup", &daemon->admin_group, &daemon->admin_gid);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/config/check/resolve.h"

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include "supervisor/config/config-problem.h"
#include "supervisor/config/keys/draft.h"
#include "supervisor/config/sandbox/files-compile.h"
#include "supervisor/config/sandbox/sandbox-compile.h"
#include "supervisor/config/syntax/envfile.h"
#include "supervisor/config/syntax/strings.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Replaces a numeric user or group by its name in the database. */
static int rename_to(char **field, const char *name)
{
    char *copy = strdup(name);

    if (!copy)
        return -ENOMEM;
    free(*field);
    *field = copy;
    return 0;
}

static int not_found(struct config_draft *draft, const char *key, const char *what,
                     const char *name, int error)
{
    if (error == ENOENT)
        return config_draft_problem(draft, key,
                                    "%s=%.80s: unknown %s; allowed: the name or number of an "
                                    "existing %s",
                                    key, name, what, what);
    if (error == ETIMEDOUT)
        return config_draft_problem(draft, key,
                                    "%s=%.80s: %s cannot be looked up: no answer from the name "
                                    "service in time",
                                    key, name, what);
    return config_draft_problem(draft, key, "%s=%.80s: %s cannot be looked up: %s", key, name, what,
                                strerror(error));
}

static int copy_groups(struct config_group *group, const struct name *user)
{
    gid_t *groups = calloc(user->n_groups + 1, sizeof(*groups));

    if (!groups)
        return -ENOMEM;
    if (user->n_groups > 0)
        memcpy(groups, user->groups, user->n_groups * sizeof(*groups));
    free(group->groups);
    group->groups = groups;
    group->n_groups = user->n_groups;
    return 0;
}

static int copy_environment(struct config_group *group, const struct name *user)
{
    group->user_environment = strv_free(group->user_environment);
    return strv_copy(&group->user_environment, user->environment);
}

/* Does nothing if no user is given. */
static int resolve_uid(struct config_draft *draft, const char *key, const struct names *names,
                       char **name, uid_t *ret)
{
    const struct name *found = names_find(names, NAMES_USER, *name);

    if (!*name)
        return 0;
    if (!found || found->error != 0)
        return not_found(draft, key, "user", *name, found ? found->error : ETIMEDOUT);
    *ret = found->uid;
    return rename_to(name, found->name);
}

static int resolve_user(struct config_draft *draft, struct config_group *group,
                        const struct names *names)
{
    const struct name *user = names_find(names, NAMES_USER, group->user);
    int r;

    if (!user || user->error != 0)
        return not_found(draft, "User", "user", group->user, user ? user->error : ETIMEDOUT);
    group->uid = user->uid;
    group->gid = user->gid;
    r = copy_groups(group, user);
    if (r == 0)
        r = copy_environment(group, user);
    return r < 0 ? r : rename_to(&group->user, user->name);
}

/* Like resolve_uid(), but for a group. */
static int resolve_gid(struct config_draft *draft, const char *key, const struct names *names,
                       char **name, gid_t *ret)
{
    const struct name *found = names_find(names, NAMES_GROUP, *name);

    if (!*name)
        return 0;
    if (!found || found->error != 0)
        return not_found(draft, key, "group", *name, found ? found->error : ETIMEDOUT);
    *ret = found->gid;
    return rename_to(name, found->name);
}

/* This process need not be able to execute another user's program. */
static enum names_kind program_kind(const struct config_group *group)
{
    return group->user ? NAMES_PROGRAM_OF_USER : NAMES_PROGRAM;
}

static const char *program_of(const struct config_group *group)
{
    return group->exec_start ? group->exec_start[0] : NULL;
}

static int check_program(struct config_draft *draft, struct config_group *group,
                         const struct names *names)
{
    const char *program = program_of(group);
    const struct name *found = names_find(names, program_kind(group), program);

    if (!program)
        return 0; /* reported as a problem of the file */
    if (found && found->error == 0)
        return rename_to(&group->exec_start[0], found->name);
    if (found && found->error == ENOENT)
        return config_draft_problem(draft, "ExecStart",
                                    "ExecStart=: program '%.200s' is not on the path %s", program,
                                    NAMES_PATH);
    return config_draft_problem(draft, "ExecStart",
                                "ExecStart=: program '%.200s': %s; allowed: an executable file",
                                program, names_fault(found));
}

static int check_directory(struct config_draft *draft, const struct config_group *group,
                           const struct names *names)
{
    const struct name *found = names_find(names, NAMES_DIRECTORY, group->working_directory);

    if (!group->working_directory || (found && found->error == 0))
        return 0;
    return config_draft_problem(draft, "WorkingDirectory",
                                "WorkingDirectory=%.200s: %s; allowed: an existing directory",
                                group->working_directory, names_fault(found));
}

/* The highest number in a list such as "0-3,6". */
static unsigned long highest_cpu(const char *list)
{
    unsigned long highest = 0;

    for (const char *at = list; at; at = strpbrk(at, ",-")) {
        at += *at == ',' || *at == '-';
        if (strtoul(at, NULL, 10) > highest)
            highest = strtoul(at, NULL, 10);
    }
    return highest;
}

/* The kernel refuses a list with a CPU that the machine can never have; one may be offline. */
static int check_cpus(struct config_draft *draft, const struct config_group *group)
{
    _cleanup_close_ int fd = -1;
    char possible[256];
    ssize_t n;

    if (!group->allowed_cpus)
        return 0;
    fd = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, possible, sizeof(possible) - 1);
    if (n <= 0)
        return 0;
    possible[n] = '\0';
    if (highest_cpu(group->allowed_cpus) <= highest_cpu(possible))
        return 0;
    return config_draft_problem(
        draft, "AllowedCPUs", "AllowedCPUs=%.80s: this machine has no CPU %lu; allowed: up to %lu",
        group->allowed_cpus, highest_cpu(group->allowed_cpus), highest_cpu(possible));
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

/* The file's path; `*ret` = it may be missing. */
static const char *environment_path(const char *file, bool *ret)
{
    *ret = *file == '-';
    return *ret ? file + 1 : file;
}

static int read_environment(struct config_draft *draft, struct config_strings *variables,
                            const char *file, const struct names *names)
{
    bool optional;
    struct environment_reading reading = {draft->problems, environment_path(file, &optional)};
    const struct name *found = names_find(names, NAMES_FILE, reading.path);

    if (found && found->error == 0)
        return envfile_parse(found->name, found->size, variables, on_environment_problem, &reading);
    if (found && found->error == ENOENT && optional)
        return 0;
    return config_draft_problem(draft, "EnvironmentFile",
                                "EnvironmentFile=%.200s: %s; allowed: a readable file, or - in "
                                "front if it may be missing",
                                file, names_fault(found));
}

/*
 * Files override Environment=, later files earlier ones, as in systemd. With any problem of the
 * group, Environment= stays as it is for a retry.
 */
static int check_environment(struct config_draft *draft, struct config_group *group,
                             const struct names *names)
{
    char **const files = group->environment_files.strings;
    _cleanup_strings_ struct config_strings variables = {0};
    int r = 0;

    if (!files)
        return 0;
    for (size_t i = 0; r == 0 && i < group->environment.n; i++)
        r = strings_set(&variables, group->environment.strings[i]);
    for (size_t i = 0; r == 0 && files[i]; i++)
        r = read_environment(draft, &variables, files[i], names);
    if (r < 0 || draft->problems->n_problems > 0)
        return r;
    strings_clear(&group->environment);
    group->environment = variables;
    variables = (struct config_strings){0};
    return 0;
}

/* Files of root are writable for it without any capability. */
static int check_profile(struct config_draft *draft, const struct config_group *group)
{
    if (group->profile != CONFIG_PROFILE_STRICT || group->uid != 0)
        return 0;
    return config_draft_problem(draft, "Profile",
                                "Profile=strict: the workers would run as root, from which it "
                                "does not protect the machine; allowed: with another User= in "
                                "[Group], such as User=nobody");
}

static int compile_sandbox(struct config_draft *draft, struct config_group *group,
                           const struct names *names)
{
    int r;

    group->sandbox = sandbox_free(group->sandbox);
    group->sandbox_files = files_free(group->sandbox_files);
    group->network = network_free(group->network);
    r = files_compile(group, &group->sandbox_files);
    if (r == 0 && group->private_network)
        r = network_new(&group->network);
    if (r == 0)
        r = sandbox_compile(group, names, &group->sandbox);
    if (r == 0 || r == -ENOMEM)
        return r;
    return config_draft_problem(draft, "SystemCallFilter", "the sandbox cannot be compiled: %s",
                                strerror(-r));
}

/* Otherwise each start would fail at exec(), with an error that names no reason. */
static int check_hidden_program(struct config_draft *draft, const struct config_group *group)
{
    const char *program = program_of(group), *key, *path;

    if (!program || *program != '/' || path_has_dots(program))
        return 0;
    key = files_hiding_key(group, group->sandbox_files, program, &path);
    if (!key)
        return 0;
    return config_draft_problem(draft, "ExecStart",
                                "ExecStart=: program '%.200s' is in %.100s, which %s in [Sandbox] "
                                "hides from the worker; allowed: a program elsewhere",
                                program, path, key);
}

static int resolve_group(struct config_draft *draft, struct config_group *group,
                         const struct names *names)
{
    int r = 0;

    group->uid = geteuid();
    group->gid = getegid();
    if (group->user)
        r = resolve_user(draft, group, names);
    if (r == 0)
        r = resolve_gid(draft, "Group", names, &group->group_name, &group->gid);
    if (r == 0)
        r = resolve_uid(draft, "SubmitUser", names, &group->submit_user, &group->submit_uid);
    if (r == 0)
        r = resolve_gid(draft, "SubmitGroup", names, &group->submit_group, &group->submit_gid);
    if (r == 0)
        r = check_program(draft, group, names);
    if (r == 0)
        r = check_directory(draft, group, names);
    if (r == 0)
        r = check_cpus(draft, group);
    if (r == 0)
        r = check_profile(draft, group);
    if (r == 0)
        r = compile_sandbox(draft, group, names);
    if (r == 0)
        r = check_hidden_program(draft, group);
    return r < 0 ? r : check_environment(draft, group, names);
}

/* Joins all faults of a group into one line. */
static int note_fault(struct config_group *group, const struct config_problems *faults)
{
    struct buffer text = BUFFER_NULL;

    free(TAKE_PTR(group->fault));
    if (faults->n_problems == 0)
        return 0;
    for (size_t i = 0; i < faults->n_problems; i++) {
        buffer_add_string(&text, i > 0 ? "; and " : "");
        buffer_add_string(&text, faults->problems[i].text);
    }
    group->fault = buffer_take(&text, NULL);
    return group->fault ? 0 : -ENOMEM;
}

int config_resolve_group(struct config_group *group, const struct names *names,
                         struct config_problems *faults)
{
    struct config_problems own = CONFIG_PROBLEMS_NULL;
    int r;

    if (group->unread || !group->draft || !group->draft->paths)
        return 0; /* its files have a mistake, which was reported */
    group->draft->problems = &own;
    r = resolve_group(group->draft, group, names);
    group->draft->problems = NULL;
    if (r == 0)
        r = note_fault(group, &own);
    if (r == 0)
        r = config_problems_move(faults, &own);
    if (r == 0)
        r = config_group_set_digest(group);
    config_problems_deinit(&own);
    return r;
}

/* A missing group has no members, so it grants no permissions. */
static int resolve_group_of_daemon(struct config_draft *draft, const char *key,
                                   const struct names *names, char **name, gid_t *ret)
{
    const size_t n_before = draft->problems->n_problems;
    int r = resolve_gid(draft, key, names, name, ret);

    if (draft->problems->n_problems > n_before)
        free(TAKE_PTR(*name));
    return r;
}

static int resolve_daemon(struct config *config, const struct names *names,
                          struct config_problems *faults)
{
    struct config_daemon *daemon = &config->daemon;
    int r;

    config->daemon_draft->problems = faults;
    r = resolve_group_of_daemon(config->daemon_draft, "AdminGroup", names, &daemon->admin_group,
                                &daemon->admin_gid);
    if (r == 0)
        r = resolve_group_of_daemon(config->daemon_draft, "ReadGroup", names, &daemon->read_group,
                                    &daemon->read_gid);
    config->daemon_draft->problems = NULL;
    return r;
}

int config_want_group_names(const struct config_group *group, struct names *names)
{
    const struct {
        enum names_kind kind;
        const char *name;
    } wanted[] = {
        {NAMES_USER, group->user},
        {NAMES_GROUP, group->group_name},
        {NAMES_USER, group->submit_user},
        {NAMES_GROUP, group->submit_group},
        {program_kind(group), program_of(group)},
        {NAMES_DIRECTORY, group->working_directory},
    };
    bool optional;
    int r = group->unread ? 0 : sandbox_want(group, names);

    for (size_t i = 0; r == 0 && !group->unread && i < ELEMENTS(wanted); i++)
        r = names_want(names, wanted[i].kind, wanted[i].name);
    for (size_t i = 0; r == 0 && !group->unread && i < group->environment_files.n; i++)
        r = names_want(names, NAMES_FILE,
                       environment_path(group->environment_files.strings[i], &optional));
    return r;
}

/* ---- schedules ---- */

static int want_data(const struct config *config, struct names *names)
{
    const struct config_files *files = &config->files[CONFIG_SCHEDULE];
    int r = 0;

    for (size_t i = 0; r == 0 && i < files->n; i++) {
        const struct config_schedule *schedule = files->all[i];

        r = names_want(names, NAMES_FILE, schedule->data_file);
    }
    return r;
}

static int resolve_data(struct config_schedule *schedule, const struct names *names,
                        struct config_problems *faults)
{
    const struct name *found = names_find(names, NAMES_FILE, schedule->data_file);
    int r;

    if (found && found->error == 0)
        return config_schedule_set_data(schedule, found->name, found->size);
    schedule->broken = true;
    schedule->draft->problems = faults;
    r = config_draft_problem(schedule->draft, "DataFile",
                             "DataFile=%.200s cannot be read: %s; allowed: a readable file of up "
                             "to 1M",
                             schedule->data_file, names_fault(found));
    schedule->draft->problems = NULL;
    return r < 0 ? r : CONFIG_E_INVALID;
}

static int resolve_schedules(struct config *config, const struct names *names,
                             struct config_problems *faults)
{
    const struct config_files *files = &config->files[CONFIG_SCHEDULE];
    bool invalid = false;

    for (size_t i = 0; i < files->n; i++) {
        struct config_schedule *schedule = files->all[i];
        const int r = schedule->data_file ? resolve_data(schedule, names, faults) : 0;

        if (r < 0)
            return r;
        invalid |= r == CONFIG_E_INVALID;
    }
    return invalid ? CONFIG_E_INVALID : 0;
}

/* ---- all ---- */

int config_want_names(const struct config *config, struct names *names)
{
    int r = names_want(names, NAMES_GROUP, config->daemon.admin_group);

    if (r == 0)
        r = names_want(names, NAMES_GROUP, config->daemon.read_group);
    for (size_t i = 0; r == 0 && i < config->n_groups; i++)
        r = config_want_group_names(config->groups[i], names);
    return r < 0 ? r : want_data(config, names);
}

int config_resolve(struct config *config, const struct names *names, struct config_problems *faults)
{
    int r = config->daemon_draft ? resolve_daemon(config, names, faults) : 0;

    for (size_t i = 0; r == 0 && i < config->n_groups; i++)
        r = config_resolve_group(config->groups[i], names, faults);
    return r < 0 ? r : resolve_schedules(config, names, faults);
}

int config_resolve_now(struct config *config, struct config_problems *faults)
{
    struct names names = NAMES_NULL;
    int r = config_want_names(config, &names);

    if (r == 0)
        r = names_look_up(&names);
    if (r == 0)
        r = config_resolve(config, &names, faults);
    names_deinit(&names);
    return r;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/files-compile.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "-" in front: may be missing. */
static const char *const SYSTEM[] = {"-/usr", "-/boot", "-/efi", "-/etc"}; /* `yes` without /etc */
static const char *const HOMES[] = {"-/home", "-/root", "-/run/user"};
/* Other keys of systemd protect them. */
static const char *const INTERFACES[] = {"-/dev", "-/proc", "-/sys"};
/* With PrivateRoot=yes. */
static const char *const VISIBLE[] = {"-/usr",   "-/bin",   "-/sbin",   "-/lib",
                                      "-/lib32", "-/lib64", "-/libx32", "-/etc"};
static const char *const DEVICES[] = {"-/dev/null", "-/dev/zero", "-/dev/full", "-/dev/random",
                                      "-/dev/urandom"};
static const char *const TMP[] = {"-/tmp", "-/var/tmp"};

/* Comes with the path of a directory of its own. */
struct compiled_files {
    struct sandbox_files files;
    char program[PATH_MAX];
};

struct sandbox_files *files_free(struct sandbox_files *files)
{
    free(files);
    return NULL;
}

static void add(struct sandbox_files *files, enum sandbox_path_kind kind, const char *path)
{
    const bool optional = *path == '-';

    if (files->n_paths < SANDBOX_PATHS_MAX)
        files->paths[files->n_paths] = (struct sandbox_path){kind, optional, path + optional};
    files->n_paths++;
}

static void add_each(struct sandbox_files *files, enum sandbox_path_kind kind,
                     const char *const *paths, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add(files, kind, paths[i]);
}

static void add_list(struct sandbox_files *files, enum sandbox_path_kind kind,
                     const struct config_strings *list)
{
    for (size_t i = 0; i < list->n; i++)
        add(files, kind, list->strings[i]);
}

static void protect_system(struct sandbox_files *files, enum config_protect_system protect)
{
    switch (protect) {
    case CONFIG_PROTECT_SYSTEM_NO:
        return;
    case CONFIG_PROTECT_SYSTEM_YES:
        add_each(files, SANDBOX_READ_ONLY, SYSTEM, ELEMENTS(SYSTEM) - 1);
        return;
    case CONFIG_PROTECT_SYSTEM_FULL:
        add_each(files, SANDBOX_READ_ONLY, SYSTEM, ELEMENTS(SYSTEM));
        return;
    case CONFIG_PROTECT_SYSTEM_STRICT:
        add(files, SANDBOX_READ_ONLY, "/");
        add_each(files, SANDBOX_UNCHANGED, INTERFACES, ELEMENTS(INTERFACES));
        add_each(files, SANDBOX_UNCHANGED, HOMES, ELEMENTS(HOMES));
        return;
    }
}

static void protect_home(struct sandbox_files *files, enum config_protect_home protect)
{
    static const enum sandbox_path_kind kinds[] = {
        [CONFIG_PROTECT_HOME_YES] = SANDBOX_INACCESSIBLE,
        [CONFIG_PROTECT_HOME_READ_ONLY] = SANDBOX_READ_ONLY,
        [CONFIG_PROTECT_HOME_TMPFS] = SANDBOX_EMPTY,
    };

    if (protect != CONFIG_PROTECT_HOME_NO)
        add_each(files, kinds[protect], HOMES, ELEMENTS(HOMES));
}

/* The directory of the program, unless that is the root. */
static void show_program(struct compiled_files *compiled, const char *program)
{
    char *const path = compiled->program;
    char *slash;

    (void)snprintf(path, sizeof(compiled->program), "%s", program);
    slash = strrchr(path, '/');
    if (slash && slash != path)
        *slash = '\0';
    if (slash)
        add(&compiled->files, SANDBOX_VISIBLE, path);
}

static void show_what_is_needed(struct compiled_files *compiled, const struct config_group *group)
{
    struct sandbox_files *files = &compiled->files;
    const char *directory = group->working_directory;

    files->private_root = true;
    add_each(files, SANDBOX_VISIBLE, VISIBLE, ELEMENTS(VISIBLE));
    add_each(files, SANDBOX_UNCHANGED, DEVICES, ELEMENTS(DEVICES));
    add(files, SANDBOX_UNCHANGED, "/proc");
    if (group->exec_start)
        show_program(compiled, group->exec_start[0]);
    if (directory && strcmp(directory, "/") != 0)
        add(files, SANDBOX_VISIBLE, directory);
}

static void protect_processes(struct sandbox_files *files, const struct config_group *group)
{
    files->hidepid = (enum sandbox_hidepid)group->protect_proc;
    files->only_processes = group->proc_subset == CONFIG_PROC_SUBSET_PID;
    if (group->private_pids || files->only_processes || files->hidepid != SANDBOX_HIDEPID_DEFAULT)
        add(files, SANDBOX_PROC, "/proc");
    if (group->private_ipc)
        add(files, SANDBOX_MQUEUE, "-/dev/mqueue");
}

static void list_paths(const struct config_group *group, struct compiled_files *compiled)
{
    struct sandbox_files *files = &compiled->files;

    if (group->private_root) {
        show_what_is_needed(compiled, group);
    } else {
        protect_system(files, group->protect_system);
        protect_home(files, group->protect_home);
    }
    add_list(files, SANDBOX_READ_ONLY, &group->read_only_paths);
    add_list(files, SANDBOX_READ_WRITE, &group->read_write_paths);
    add_list(files, SANDBOX_INACCESSIBLE, &group->inaccessible_paths);
    if (group->private_tmp != CONFIG_PRIVATE_TMP_NO)
        add_each(files, SANDBOX_PRIVATE_TMP, TMP, ELEMENTS(TMP));
    protect_processes(files, group);
}

static int compare(const void *a, const void *b)
{
    const struct sandbox_path *left = a, *right = b;
    const int order = strcmp(left->path, right->path);

    return order != 0 ? order : (int)left->kind - (int)right->kind;
}

int files_compile(const struct config_group *group, struct sandbox_files **ret)
{
    _cleanup_free_ struct compiled_files *compiled = calloc(1, sizeof(*compiled));
    struct sandbox_files *files = &compiled->files;

    *ret = NULL;
    if (!compiled)
        return -ENOMEM;
    list_paths(group, compiled);
    if (files->n_paths > SANDBOX_PATHS_MAX)
        return -E2BIG;
    if (files->n_paths == 0)
        return 0;
    qsort(files->paths, files->n_paths, sizeof(*files->paths), compare);
    compiled = NULL;
    *ret = files;
    return 0;
}

/* ---- which key it was ---- */

static bool is_home(const char *path)
{
    for (size_t i = 0; i < ELEMENTS(HOMES); i++)
        if (strcmp(path, HOMES[i] + 1) == 0)
            return true;
    return false;
}

static bool is_listed(const struct config_strings *list, const char *path)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->strings[i] + (*list->strings[i] == '-'), path) == 0)
            return true;
    return false;
}

static const char *key_that_reads(const struct config_group *group, const char *path)
{
    if (is_listed(&group->read_only_paths, path))
        return "ReadOnlyPaths=";
    return is_home(path) ? "ProtectHome=" : "ProtectSystem=";
}

static const char *key_that_hides(const struct config_group *group, const char *path)
{
    return group->protect_home != CONFIG_PROTECT_HOME_NO && !group->private_root && is_home(path)
               ? "ProtectHome="
               : "InaccessiblePaths=";
}

static const char *key_of_proc(const struct config_group *group)
{
    if (group->private_pids)
        return "PrivatePIDs=";
    return group->proc_subset == CONFIG_PROC_SUBSET_PID ? "ProcSubset=" : "ProtectProc=";
}

static const char *key_that_shows(const struct config_group *group, const struct sandbox_path *path)
{
    if (path->optional)
        return "PrivateRoot=";
    return group->working_directory && strcmp(group->working_directory, path->path) == 0
               ? "WorkingDirectory="
               : "ExecStart=";
}

const char *files_key(const struct config_group *group, const struct sandbox_path *path)
{
    switch (path->kind) {
    case SANDBOX_INACCESSIBLE:
        return key_that_hides(group, path->path);
    case SANDBOX_PRIVATE_TMP:
        return "PrivateTmp=";
    case SANDBOX_PROC:
        return key_of_proc(group);
    case SANDBOX_MQUEUE:
        return "PrivateIPC=";
    case SANDBOX_READ_ONLY:
        return key_that_reads(group, path->path);
    case SANDBOX_READ_WRITE:
        return "ReadWritePaths=";
    case SANDBOX_EMPTY:
        return "ProtectHome=";
    case SANDBOX_VISIBLE:
        return key_that_shows(group, path);
    default:
        return group->private_root ? "PrivateRoot=" : "ProtectSystem=";
    }
}

/* ---- a program out of sight ---- */

static bool is_at_or_below(const char *path, const char *directory)
{
    const size_t n = strlen(directory);

    return strncmp(path, directory, n) == 0 &&
           (path[n] == '/' || path[n] == '\0' || strcmp(directory, "/") == 0);
}

static bool hides(enum sandbox_path_kind kind)
{
    return kind == SANDBOX_INACCESSIBLE || kind == SANDBOX_PRIVATE_TMP || kind == SANDBOX_EMPTY;
}

const char *files_hiding_key(const struct config_group *group, const struct sandbox_files *files,
                             const char *program, const char **ret_path)
{
    const struct sandbox_path *last = NULL;

    /* Parents come first, and of several for one path the one that counts. */
    for (size_t i = 0; files && i < files->n_paths; i++) {
        const struct sandbox_path *path = &files->paths[i];

        if (!is_at_or_below(program, path->path) || (last && strcmp(last->path, path->path) == 0))
            continue;
        last = path;
        if (path->kind == SANDBOX_INACCESSIBLE)
            break; /* nothing below it counts */
    }
    if (!last || !hides(last->kind))
        return NULL;
    *ret_path = last->path;
    return files_key(group, last);
}

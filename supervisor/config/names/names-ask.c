/* SPDX-License-Identifier: MIT */

/* Asks the name service for a user or group, looks for a file, or compiles a filter; and packs the
 * answer. */

#include "supervisor/config/names/names-private.h"

#include "shared/base/buffer.h"
#include "shared/base/cleanup.h"
#include "shared/base/interpreter.h"
#include "shared/base/unitfile.h"
#include "supervisor/config/sandbox/filter.h"
#include "supervisor/config/syntax/strings.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Errors that mean "no such name"; all others are failures of the machine. */
static bool means_unknown(int error)
{
    return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
}

static int not_found(struct name *name, int error)
{
    if (error == ENOMEM)
        return -ENOMEM;
    name->error = means_unknown(error) ? ENOENT : error;
    return 0;
}

static int append_variable(config_strv *strings, const char *name, const char *value)
{
    char variable[4096];
    int n = snprintf(variable, sizeof(variable), "%s=%s", name, value);

    return n < 0 || (size_t)n >= sizeof(variable) ? 0 : strv_append(strings, variable);
}

static int set_environment(struct name *name, const struct passwd *entry)
{
    const char *const variables[][2] = {{"USER", entry->pw_name},
                                        {"LOGNAME", entry->pw_name},
                                        {"HOME", entry->pw_dir},
                                        {"SHELL", entry->pw_shell}};
    int r = 0;

    for (size_t i = 0; r == 0 && i < ELEMENTS(variables); i++)
        r = append_variable(&name->environment, variables[i][0], variables[i][1]);
    return r;
}

static int set_groups(struct name *name)
{
    int n = 0;

    (void)getgrouplist(name->name, name->gid, NULL, &n);
    name->groups = calloc((size_t)n + 1, sizeof(*name->groups));
    if (!name->groups)
        return -ENOMEM;
    if (getgrouplist(name->name, name->gid, name->groups, &n) < 0)
        n = 0; /* it changed in between */
    name->n_groups = (size_t)n;
    return 0;
}

static int ask_user(struct name *name)
{
    int64_t number = number_of(name->wanted);
    const struct passwd *entry;
    int r;

    errno = 0;
    entry = number >= 0 ? getpwuid((uid_t)number) : getpwnam(name->wanted);
    if (!entry)
        return not_found(name, errno);
    name->uid = entry->pw_uid;
    name->gid = entry->pw_gid;
    name->name = strdup(entry->pw_name);
    r = name->name ? set_environment(name, entry) : -ENOMEM;
    return r < 0 ? r : set_groups(name);
}

static int ask_group(struct name *name)
{
    int64_t number = number_of(name->wanted);
    const struct group *entry;

    errno = 0;
    entry = number >= 0 ? getgrgid((gid_t)number) : getgrnam(name->wanted);
    if (!entry)
        return not_found(name, errno);
    name->gid = entry->gr_gid;
    name->name = strdup(entry->gr_name);
    return name->name ? 0 : -ENOMEM;
}

/* ---- programs, directories, files ---- */

#define X_ANYBODY (S_IXUSR | S_IXGRP | S_IXOTH)

/* `text`: what is wrong, NULL if `error` says it. 0 or -ENOMEM. */
static int set_fault(struct name *name, int error, const char *text)
{
    name->error = error;
    name->name = text ? strdup(text) : NULL;
    return text && !name->name ? -ENOMEM : 0;
}

/* Returns NULL if the supervisor or the group's user may be able to execute the program. */
static const char *fault_of_program(const char *path, enum names_kind kind)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return errno == ENOENT ? "no such file" : strerror(errno);
    if (!S_ISREG(status.st_mode))
        return "not a regular file";
    /* Another user's permissions cannot be checked here: any x bit is enough. */
    if (kind == NAMES_PROGRAM_OF_USER)
        return status.st_mode & X_ANYBODY ? NULL : "not executable";
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? "not executable" : NULL;
}

/* DIRECTORY/NAME for each directory of the path; the first one that can be executed. */
static int search_program(struct name *name)
{
    const char *directory = NAMES_PATH;

    while (*directory) {
        size_t length = strcspn(directory, ":");
        _cleanup_free_ char *path = path_join_n(directory, length, name->wanted, "");

        if (!path)
            return -ENOMEM;
        if (!fault_of_program(path, name->kind)) {
            name->name = TAKE_PTR(path);
            return 0;
        }
        directory += length + (directory[length] == ':');
    }
    return set_fault(name, ENOENT, NULL);
}

static int ask_program(struct name *name)
{
    char text[INTERPRETER_TEXT];
    const char *fault;

    if (name->wanted[0] != '/')
        return search_program(name);
    fault = fault_of_program(name->wanted, name->kind);
    if (!fault)
        fault = interpreter_fault(name->wanted, text, sizeof(text));
    if (fault)
        return set_fault(name, EACCES, fault);
    name->name = strdup(name->wanted);
    return name->name ? 0 : -ENOMEM;
}

static int ask_directory(struct name *name)
{
    struct stat status;

    if (stat(name->wanted, &status) < 0)
        return set_fault(name, errno, NULL);
    return S_ISDIR(status.st_mode) ? 0 : set_fault(name, ENOTDIR, "not a directory");
}

static int ask_file(struct name *name)
{
    int r = unitfile_read(name->wanted, &name->name, &name->size);

    switch (r) {
    case 0:
    case -ENOMEM:
        return r;
    case UNITFILE_E_TOO_LARGE:
        return set_fault(name, EFBIG, "too large");
    case UNITFILE_E_NOT_REGULAR:
        return set_fault(name, EINVAL, "not a regular file");
    default:
        return set_fault(name, -r, NULL);
    }
}

/* Compiles system-call filters (sandbox/filter.h). A filter is not a name, but compiling one is
 * slow, so the process that looks names up does it. */
static int ask_filter(struct name *name)
{
    struct sandbox_filter filter;
    int r = filter_compile(name->wanted, &filter);

    if (r == -ENOMEM)
        return r;
    name->error = -r;
    if (r < 0)
        return 0;
    name->name = filter.code;
    name->size = filter.size;
    return 0;
}

/* ---- questions and answers ---- */

int names_ask(struct name *name)
{
    static int (*const ask[])(struct name * name) = {
        [NAMES_USER] = ask_user,           [NAMES_GROUP] = ask_group,
        [NAMES_PROGRAM] = ask_program,     [NAMES_PROGRAM_OF_USER] = ask_program,
        [NAMES_DIRECTORY] = ask_directory, [NAMES_FILE] = ask_file,
        [NAMES_FILTER] = ask_filter,
    };
    int r = ask[name->kind](name);

    if (r < 0)
        names_clear(name);
    name->known = r == 0;
    return r;
}

struct numbers {
    int32_t error;
    uint32_t uid, gid, n_groups;
};

static bool is_binary(enum names_kind kind)
{
    return kind == NAMES_FILE || kind == NAMES_FILTER;
}

/* Contents of files and programs of filters are not NUL-terminated, and may contain NULs. */
static size_t text_size(const struct name *name)
{
    return is_binary(name->kind) && name->error == 0 ? name->size : strlen(name->name);
}

int names_put(const struct name *name, char **ret, uint32_t *ret_size)
{
    const struct numbers numbers = {
        .error = name->error,
        .uid = name->uid,
        .gid = name->gid,
        .n_groups = (uint32_t)name->n_groups,
    };
    struct buffer buffer = BUFFER_NULL;
    size_t size = 0;

    buffer_add(&buffer, (const char *)&numbers, sizeof(numbers));
    buffer_add(&buffer, (const char *)name->groups, name->n_groups * sizeof(gid_t));
    if (name->name) {
        buffer_add(&buffer, name->name, text_size(name));
        buffer_add_char(&buffer, '\0');
    }
    for (size_t i = 0; name->environment && name->environment[i]; i++)
        buffer_add(&buffer, name->environment[i], strlen(name->environment[i]) + 1);
    *ret = buffer_take(&buffer, &size);
    *ret_size = (uint32_t)size;
    return *ret ? 0 : -ENOMEM;
}

static int get_groups(struct name *name, const char *data, uint32_t n)
{
    name->groups = calloc((size_t)n + 1, sizeof(*name->groups));
    if (!name->groups)
        return -ENOMEM;
    memcpy(name->groups, data, n * sizeof(gid_t));
    name->n_groups = n;
    return 0;
}

static int get_contents(struct name *name, const char *data, size_t size)
{
    name->name = malloc(size);
    if (!name->name)
        return -ENOMEM;
    memcpy(name->name, data, size);
    name->size = size - 1;
    return 0;
}

static int get_texts(struct name *name, const char *at, const char *end)
{
    int r = 0;

    if (is_binary(name->kind))
        return at < end ? get_contents(name, at, (size_t)(end - at)) : 0;
    for (; r == 0 && at < end; at += strlen(at) + 1) {
        if (name->name)
            r = strv_append(&name->environment, at);
        else if (!(name->name = strdup(at)))
            r = -ENOMEM;
    }
    return r;
}

int names_get(struct name *name, const char *data, uint32_t size)
{
    const char *end = data + size;
    struct numbers numbers;
    int r;

    if (size < sizeof(numbers))
        return -EBADMSG;
    memcpy(&numbers, data, sizeof(numbers));
    data += sizeof(numbers);
    if (numbers.n_groups > (size_t)(end - data) / sizeof(gid_t) || (data < end && end[-1] != '\0'))
        return -EBADMSG;
    name->error = numbers.error;
    name->uid = numbers.uid;
    name->gid = numbers.gid;
    r = get_groups(name, data, numbers.n_groups);
    if (r == 0)
        r = get_texts(name, data + numbers.n_groups * sizeof(gid_t), end);
    if (r < 0)
        names_clear(name);
    name->known = r == 0;
    return r;
}

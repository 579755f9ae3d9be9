/* SPDX-License-Identifier: MIT */

/* Checks whether the programs, directories and environment files of a group exist. */

#include "supervisor/config/names/names-private.h"

#include "shared/base/cleanup.h"
#include "shared/base/interpreter.h"
#include "shared/base/unitfile.h"
#include "supervisor/config/syntax/path.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

int names_ask_program(struct name *name)
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

int names_ask_directory(struct name *name)
{
    struct stat status;

    if (stat(name->wanted, &status) < 0)
        return set_fault(name, errno, NULL);
    return S_ISDIR(status.st_mode) ? 0 : set_fault(name, ENOTDIR, "not a directory");
}

int names_ask_file(struct name *name)
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

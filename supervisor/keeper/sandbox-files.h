/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The part of the file system that a process sees. The supervisor lists it once per reload; the new
 * process makes it true in a mount namespace of its own, between clone and exec, so that each start
 * sees the paths as they are then.
 */

#include <stdbool.h>
#include <stddef.h>

#define SANDBOX_PATHS_MAX 320

/* In the order of precedence: of several for one path, the first one counts. A path applies to all
 * below it that is not listed itself. */
enum sandbox_path_kind {
    SANDBOX_INACCESSIBLE, /* and nothing that is listed below counts */
    SANDBOX_PRIVATE_TMP,  /* empty, and the process's own */
    SANDBOX_PROC,         /* a /proc of the process's PID namespace, see `hidepid`; what is mounted
                             below the old one stays */
    SANDBOX_MQUEUE,       /* the message queues of its IPC namespace */
    SANDBOX_READ_ONLY,
    SANDBOX_READ_WRITE,
    SANDBOX_EMPTY,     /* and read-only */
    SANDBOX_UNCHANGED, /* as READ_WRITE */
    SANDBOX_VISIBLE,   /* as READ_ONLY */
    _SANDBOX_N_PATH_KINDS,
};

/* Which processes of other users there are in /proc. */
enum sandbox_hidepid {
    SANDBOX_HIDEPID_DEFAULT,
    SANDBOX_HIDEPID_NOACCESS,
    SANDBOX_HIDEPID_INVISIBLE,
    SANDBOX_HIDEPID_PTRACEABLE,
    _SANDBOX_N_HIDEPIDS,
};

struct sandbox_path {
    enum sandbox_path_kind kind;
    bool optional;    /* may be missing */
    const char *path; /* absolute, without "//", "." and ".."; may have symbolic links */
};

struct sandbox_files {
    /* These two concern SANDBOX_PROC. */
    enum sandbox_hidepid hidepid;
    bool only_processes; /* nothing else there */
    /* The root is a new one, which has only what is listed as READ_ONLY, READ_WRITE, UNCHANGED or
     * VISIBLE, and the new file systems; itself, it is read-only. */
    bool private_root;
    size_t n_paths;
    struct sandbox_path paths[SANDBOX_PATHS_MAX]; /* fastest if sorted */
};

/*
 * sandbox_files_separate() gives this process mounts of its own, sandbox_files_apply() then
 * confines it to `files`, which stays where it is. Both use static memory: only a new process may
 * call them, and once. Return 0, or -errno with `*ret_path` = at which of the paths; NULL = none,
 * and from the first function: it may not have such mounts.
 */
int sandbox_files_separate(const struct sandbox_files *files, const struct sandbox_path **ret_path);
int sandbox_files_apply(const struct sandbox_path **ret_path);

/* Returns whether the process is to have a /proc of its own. */
bool sandbox_files_has_proc(const struct sandbox_files *files);

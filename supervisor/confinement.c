/* SPDX-License-Identifier: MIT */
#include "supervisor/confinement.h"
#include "shared/base/cleanup.h"
#include "supervisor/config/sandbox/syscall-groups.h"
#include <errno.h>
#include <seccomp.h>
#include <stdbool.h>
#include <string.h>

/*
 * A list of what is forbidden, because the process that looks up names is this program, too, and
 * runs modules of the machine's choice. An error instead of death, because one of these may try
 * what it can do without. Without conditions, so that the kernel knows in advance which calls are
 * allowed, and does not run the filter for them.
 */
static const char FORBIDDEN[] =
    "@clock @cpu-emulation @debug @module @mount @obsolete @raw-io @reboot @setuid @swap acct bpf "
    "capset fanotify_init fanotify_mark kcmp open_by_handle_at process_vm_readv process_vm_writev "
    "quotactl quotactl_fd setdomainname setfsgid setfsgid32 setfsuid setfsuid32 sethostname setns "
    "unshare userfaultfd vhangup";

static void release(scmp_filter_ctx *context)
{
    if (*context)
        seccomp_release(*context);
}

static int forbid_all(scmp_filter_ctx context, const char *names);

/* Not every machine has each of these calls. */
static int forbid(scmp_filter_ctx context, const char *name)
{
    const int call = *name == '@' ? -1 : seccomp_syscall_resolve_name(name);
    int r;

    if (*name == '@')
        return forbid_all(context, syscall_group_find(name));
    if (call == __NR_SCMP_ERROR)
        return 0;
    r = seccomp_rule_add(context, SCMP_ACT_ERRNO(EPERM), call, 0);
    return r == -EDOM || r == -EEXIST ? 0 : r;
}

static int forbid_all(scmp_filter_ctx context, const char *names)
{
    char name[64];
    int r = 0;

    for (size_t n; r == 0 && (n = strcspn(names, " ")) > 0; names += n + (names[n] == ' ')) {
        if (n >= sizeof(name))
            return -ENAMETOOLONG;
        memcpy(name, names, n);
        name[n] = '\0';
        r = forbid(context, name);
    }
    return r;
}

/* A sanitizer's search for leaks traces this process. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* libseccomp also gives up new privileges, for good. */
int confinement_apply(void)
{
    _cleanup_(release)
    scmp_filter_ctx context = SANITIZED ? NULL : seccomp_init(SCMP_ACT_ALLOW);
    int r;

    if (SANITIZED)
        return 0;
    if (!context)
        return -ENOMEM;
    r = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree */
    if (r == 0)
        r = forbid_all(context, FORBIDDEN);
    return r < 0 ? r : seccomp_load(context);
}

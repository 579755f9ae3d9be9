/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/filter.h"
#include "shared/base/cleanup.h"
#include "supervisor/config/sandbox/sandbox-words.h"
#include "supervisor/config/sandbox/syscall-groups.h"
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Above all numbers of system calls. */
#define SYSCALLS_MAX 2048

static void release(scmp_filter_ctx *context)
{
    if (*context)
        seccomp_release(*context);
}

#define _cleanup_filter_ _cleanup_(release)

static int start(uint32_t fallback, scmp_filter_ctx *ret)
{
    scmp_filter_ctx context = seccomp_init(fallback);
    int r;

    if (!context)
        return -ENOMEM;
    r = seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (r == 0)
        r = seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree */
    *ret = context;
    return r;
}

static int read_code(int fd, struct sandbox_filter *ret)
{
    _cleanup_free_ void *code = NULL;
    struct stat status;

    if (fstat(fd, &status) < 0)
        return -errno;
    if ((size_t)status.st_size > SANDBOX_FILTER_SIZE_MAX)
        return -E2BIG;
    code = malloc((size_t)status.st_size);
    if (!code)
        return -ENOMEM;
    if (pread(fd, code, (size_t)status.st_size, 0) != status.st_size)
        return -EIO;
    *ret = (struct sandbox_filter){.code = TAKE_PTR(code), .size = (size_t)status.st_size};
    return 0;
}

static int finish(scmp_filter_ctx context, struct sandbox_filter *ret)
{
    _cleanup_close_ int fd = memfd_create("filter", MFD_CLOEXEC);
    int r = fd < 0 ? -errno : seccomp_export_bpf(context, fd);

    return r < 0 ? r : read_code(fd, ret);
}

/* ---- arguments ---- */

/* The upper halves of arguments that are an int are not looked at, as in the kernel. */
static int forbid_bits(scmp_filter_ctx context, int call, unsigned argument, uint64_t bits,
                       int error)
{
    const struct scmp_arg_cmp test = {argument, SCMP_CMP_MASKED_EQ, bits, bits};

    return seccomp_rule_add_array(context, SCMP_ACT_ERRNO((unsigned)error), call, 1, &test);
}

static int forbid_family(scmp_filter_ctx context, enum scmp_compare compare, uint64_t a, uint64_t b)
{
    const struct scmp_arg_cmp test = {0, compare, a, b};

    return seccomp_rule_add_array(context, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                  &test);
}

static int restrict_families(scmp_filter_ctx context, uint64_t allowed)
{
    const int last = allowed ? 63 - __builtin_clzll(allowed) : -1;
    int r = 0;

    if (last < 0)
        return seccomp_rule_add(context, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 0);
    for (int family = 0; r == 0 && family < last; family++)
        if (!(allowed >> family & 1))
            r = forbid_family(context, SCMP_CMP_MASKED_EQ, UINT32_MAX, (unsigned)family);
    if (r == 0)
        r = forbid_family(context, SCMP_CMP_GT, (unsigned)last, 0);
    return r;
}

static int forbid_namespace(scmp_filter_ctx context, unsigned long flag)
{
    int r = forbid_bits(context, SCMP_SYS(unshare), 0, flag, EPERM);

    if (r == 0)
        r = forbid_bits(context, SCMP_SYS(clone), 0, flag, EPERM);
    return r == 0 ? forbid_bits(context, SCMP_SYS(setns), 1, flag, EPERM) : r;
}

/* A filter cannot read the flags of clone3(); C libraries then use clone(). setns() to a namespace
 * of any type has no flags. */
static int restrict_namespaces(scmp_filter_ctx context, uint64_t allowed)
{
    const struct scmp_arg_cmp any_type = {1, SCMP_CMP_MASKED_EQ, UINT32_MAX, 0};
    int r = seccomp_rule_add(context, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);

    if (r == 0)
        r = seccomp_rule_add_array(context, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(setns), 1, &any_type);
    for (int number = 0; r == 0 && number < SANDBOX_NAMESPACES; number++)
        if (!(allowed >> number & 1))
            r = forbid_namespace(context, sandbox_namespace_flag(number));
    return r;
}

static int deny_write_execute(scmp_filter_ctx context)
{
    int r = forbid_bits(context, SCMP_SYS(mmap), 2, PROT_EXEC | PROT_WRITE, EPERM);

    if (r == 0)
        r = forbid_bits(context, SCMP_SYS(mmap2), 2, PROT_EXEC | PROT_WRITE, EPERM);
    if (r == 0)
        r = forbid_bits(context, SCMP_SYS(mprotect), 2, PROT_EXEC, EPERM);
    if (r == 0)
        r = forbid_bits(context, SCMP_SYS(pkey_mprotect), 2, PROT_EXEC, EPERM);
    return r == 0 ? forbid_bits(context, SCMP_SYS(shmat), 2, SHM_EXEC, EPERM) : r;
}

static bool restricts_namespaces(const struct config_group *group)
{
    return group->restrict_namespaces.n > 0 &&
           ~sandbox_set(&group->restrict_namespaces, sandbox_namespace);
}

bool filter_restricts(const struct config_group *group)
{
    return group->memory_deny_write_execute || group->restrict_address_families.n > 0 ||
           restricts_namespaces(group) || group->system_call_architectures.n > 0;
}

int filter_compile_restrictions(const struct config_group *group, struct sandbox_filter *ret)
{
    _cleanup_filter_ scmp_filter_ctx context = NULL;
    int r = start(SCMP_ACT_ALLOW, &context);

    if (r == 0 && group->restrict_address_families.n > 0)
        r = restrict_families(context,
                              sandbox_set(&group->restrict_address_families, sandbox_family));
    if (r == 0 && restricts_namespaces(group))
        r = restrict_namespaces(context,
                                sandbox_set(&group->restrict_namespaces, sandbox_namespace));
    if (r == 0 && group->memory_deny_write_execute)
        r = deny_write_execute(context);
    return r < 0 ? r : finish(context, ret);
}

/* ---- calls ---- */

/* What happens to each call: UNLISTED, LISTED, or an action. */
struct listing {
    bool allows; /* lists what is allowed */
    enum {
        UNLISTED,
        LISTED,
        WITH_ACTION
    } state[SYSCALLS_MAX];
    uint32_t action[SYSCALLS_MAX];
};

static uint32_t action_of(int error)
{
    return error == 0 ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ERRNO((unsigned)error);
}

static void list_call(struct listing *listing, int call, bool add, int error)
{
    /* Negative: not on this architecture. */
    if (call < 0 || call >= SYSCALLS_MAX)
        return;
    listing->state[call] = error >= 0 ? WITH_ACTION : add ? LISTED : UNLISTED;
    listing->action[call] = error < 0 ? 0 : action_of(error);
}

static void list_name(struct listing *listing, const char *name, bool add, int error)
{
    const char *members = *name == '@' ? syscall_group_find(name) : NULL;
    char member[64];

    if (*name != '@')
        list_call(listing, seccomp_syscall_resolve_name(name), add, error);
    for (size_t n; members && (n = strcspn(members, " ")) > 0; members += n + (members[n] == ' ')) {
        memcpy(member, members, n);
        member[n] = '\0';
        list_name(listing, member, add, error);
    }
}

static void list_word(struct listing *listing, const char *word)
{
    const bool add = (*word == '~') != listing->allows;
    const char *colon = strchr(word, ':');
    const int error = colon ? sandbox_error(colon + 1) : -1;
    char name[64];

    word = sandbox_word(word);
    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, ":"), word);
    list_name(listing, name, add, error);
}

static int add_rules(scmp_filter_ctx context, const struct listing *listing, uint32_t fallback,
                     uint32_t listed)
{
    int r = 0;

    for (int call = 0; r == 0 && call < SYSCALLS_MAX; call++) {
        const uint32_t action =
            listing->state[call] == WITH_ACTION ? listing->action[call] : listed;

        if (listing->state[call] != UNLISTED && action != fallback)
            r = seccomp_rule_add(context, action, call, 0);
    }
    return r;
}

bool filter_lists_syscalls(const struct config_group *group)
{
    return group->system_call_filter.n > 0;
}

int filter_compile_syscalls(const struct config_group *group, struct sandbox_filter *ret)
{
    const struct config_strings *list = &group->system_call_filter;
    const uint32_t denied = action_of(group->system_call_error_number);
    _cleanup_filter_ scmp_filter_ctx context = NULL;
    _cleanup_free_ struct listing *listing = calloc(1, sizeof(*listing));
    int r;

    if (!listing)
        return -ENOMEM;
    listing->allows = *list->strings[0] != '~';
    if (listing->allows)
        list_name(listing, "@default", true, -1);
    for (size_t i = 0; i < list->n; i++)
        list_word(listing, list->strings[i]);
    r = start(listing->allows ? denied : SCMP_ACT_ALLOW, &context);
    if (r == 0)
        r = add_rules(context, listing, listing->allows ? denied : SCMP_ACT_ALLOW,
                      listing->allows ? SCMP_ACT_ALLOW : denied);
    return r < 0 ? r : finish(context, ret);
}

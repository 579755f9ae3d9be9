/* SPDX-License-Identifier: MIT */
/* The keys of [Sandbox] that restrict the arguments of system calls. */
#include "supervisor/config/sandbox/filter-private.h"
#include "supervisor/config/sandbox/sandbox-words.h"
#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>

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

/* The settings of a group that restrict arguments. */
struct restrictions {
    int memory;                    /* MemoryDenyWriteExecute= */
    uint64_t families, namespaces; /* the allowed ones: bit N = number N */
};

static uint64_t families_of(const struct config_group *group)
{
    return group->restrict_address_families.n > 0
               ? sandbox_set(&group->restrict_address_families, sandbox_family)
               : UINT64_MAX;
}

static uint64_t namespaces_of(const struct config_group *group)
{
    return group->restrict_namespaces.n > 0
               ? sandbox_set(&group->restrict_namespaces, sandbox_namespace)
               : UINT64_MAX;
}

void filter_put_arguments(FILE *file, const struct config_group *group)
{
    const uint64_t families = families_of(group), namespaces = namespaces_of(group);

    if (group->memory_deny_write_execute || group->restrict_address_families.n > 0 ||
        namespaces != UINT64_MAX || group->system_call_architectures.n > 0)
        fprintf(file, FILTER_ARGUMENTS "%d %" PRIx64 " %" PRIx64 " ",
                group->memory_deny_write_execute, families, namespaces);
}

int filter_add_arguments(scmp_filter_ctx context, const char *settings, const char **ret_rest)
{
    struct restrictions asked;
    int n, r = 0;

    if (sscanf(settings, FILTER_ARGUMENTS "%d %" SCNx64 " %" SCNx64 " %n", &asked.memory,
               &asked.families, &asked.namespaces, &n) != 3)
        return -EINVAL;
    *ret_rest = settings + n;
    if (asked.families != UINT64_MAX)
        r = restrict_families(context, asked.families);
    if (r == 0 && asked.namespaces != UINT64_MAX)
        r = restrict_namespaces(context, asked.namespaces);
    if (r == 0 && asked.memory)
        r = deny_write_execute(context);
    return r;
}

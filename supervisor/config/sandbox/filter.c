/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/filter.h"
#include "shared/base/cleanup.h"
#include "supervisor/config/sandbox/sandbox-words.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* ---- keys of [Sandbox] that restrict the arguments of system calls ---- */

/* How their part of the settings begins. */
#define FILTER_ARGUMENTS "arguments "

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
    static const struct {
        int call;
        uint64_t bits; /* of the third argument */
    } forbidden[] = {
        {SCMP_SYS(mmap), PROT_EXEC | PROT_WRITE},
        {SCMP_SYS(mmap2), PROT_EXEC | PROT_WRITE},
        {SCMP_SYS(mprotect), PROT_EXEC},
        {SCMP_SYS(pkey_mprotect), PROT_EXEC},
        {SCMP_SYS(shmat), SHM_EXEC},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ELEMENTS(forbidden); i++)
        r = forbid_bits(context, forbidden[i].call, 2, forbidden[i].bits, EPERM);
    return r;
}

static int forbid_value(scmp_filter_ctx context, int call, unsigned argument, uint64_t value)
{
    const struct scmp_arg_cmp test = {argument, SCMP_CMP_MASKED_EQ, UINT32_MAX, value};

    return seccomp_rule_add_array(context, SCMP_ACT_ERRNO(EINVAL), call, 1, &test);
}

/* While the kernel takes pages out of a file, or merges them, others that read these pages wait:
 * the supervisor, if the file is a worker's outbox. That takes long if the file is mapped often. */
static int keep_pages(scmp_filter_ctx context)
{
    static const uint64_t advice[] = {MADV_REMOVE, MADV_COLLAPSE};
    int r = forbid_bits(context, SCMP_SYS(fallocate), 1, FALLOC_FL_PUNCH_HOLE, EOPNOTSUPP);

    for (size_t i = 0; r == 0 && i < ELEMENTS(advice); i++) {
        r = forbid_value(context, SCMP_SYS(madvise), 2, advice[i]);
        if (r == 0)
            r = forbid_value(context, SCMP_SYS(process_madvise), 3, advice[i]);
    }
    return r;
}

/* The settings of a group that restrict arguments. */
struct restrictions {
    int memory;                    /* MemoryDenyWriteExecute= */
    int pages;                     /* Profile=strict: keep_pages() */
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

static void put_arguments(FILE *file, const struct config_group *group)
{
    const uint64_t families = families_of(group), namespaces = namespaces_of(group);

    const bool pages = group->profile == CONFIG_PROFILE_STRICT;

    if (group->memory_deny_write_execute || pages || group->restrict_address_families.n > 0 ||
        namespaces != UINT64_MAX || group->system_call_architectures.n > 0)
        fprintf(file, FILTER_ARGUMENTS "%d %d %" PRIx64 " %" PRIx64 " ",
                group->memory_deny_write_execute, pages, families, namespaces);
}

static int add_arguments(scmp_filter_ctx context, const char *settings, const char **ret_rest)
{
    struct restrictions asked;
    int n, r = 0;

    if (sscanf(settings, FILTER_ARGUMENTS "%d %d %" SCNx64 " %" SCNx64 " %n", &asked.memory,
               &asked.pages, &asked.families, &asked.namespaces, &n) != 4)
        return -EINVAL;
    *ret_rest = settings + n;
    if (asked.families != UINT64_MAX)
        r = restrict_families(context, asked.families);
    if (r == 0 && asked.namespaces != UINT64_MAX)
        r = restrict_namespaces(context, asked.namespaces);
    if (r == 0 && asked.memory)
        r = deny_write_execute(context);
    if (r == 0 && asked.pages)
        r = keep_pages(context);
    return r;
}

static void release(scmp_filter_ctx *context)
{
    if (*context)
        seccomp_release(*context);
}

#define _cleanup_filter_ _cleanup_(release)

int filter_settings_of(const struct config_group *group, char **ret)
{
    size_t size;
    FILE *file = open_memstream(ret, &size);
    bool failed;

    if (!file) {
        *ret = NULL;
        return -ENOMEM;
    }
    put_arguments(file, group);
    filter_put_calls(file, group);
    failed = fclose(file) != 0;
    if (failed || size == 0)
        free(TAKE_PTR(*ret));
    return failed ? -ENOMEM : 0;
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

static int start(scmp_filter_ctx *context)
{
    int r;

    *context = seccomp_init(SCMP_ACT_ALLOW);
    if (!*context)
        return -ENOMEM;
    r = seccomp_attr_set(*context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (r == 0)
        r = seccomp_attr_set(*context, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree */
    return r;
}

static int compile_arguments(const char *settings, struct sandbox_filter *ret,
                             const char **ret_rest)
{
    _cleanup_filter_ scmp_filter_ctx context = NULL;
    int r = start(&context);

    if (r == 0)
        r = add_arguments(context, settings, ret_rest);
    return r < 0 ? r : finish(context, ret);
}

/* ---- both parts ---- */

static void replace_returns(struct sock_filter *code, size_t n, unsigned action,
                            struct sock_filter other)
{
    for (size_t i = 0; i < n; i++)
        if (code[i].code == (BPF_RET | BPF_K) && code[i].k == action)
            code[i] = other;
}

/* Makes each return with this action a jump to `to`. Returns whether there is one. */
static bool continue_at(struct sock_filter *code, size_t n, unsigned action, size_t to)
{
    bool found = false;

    for (size_t i = 0; i < n; i++)
        if (code[i].code == (BPF_RET | BPF_K) && code[i].k == action) {
            code[i] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (unsigned)(to - i - 1));
            found = true;
        }
    return found;
}

int filter_join(const struct sandbox_filter *calls, const struct sandbox_filter *arguments,
                struct sandbox_filter *ret)
{
    const size_t first = calls->size / sizeof(struct sock_filter);
    const size_t n = arguments->size / sizeof(struct sock_filter);
    struct sock_filter *code = malloc(calls->size + 2 * arguments->size);
    size_t size = calls->size + arguments->size;

    if (!code)
        return -ENOMEM;
    memcpy(code, calls->code, calls->size);
    memcpy(code + first, arguments->code, arguments->size);
    (void)continue_at(code, first, SECCOMP_RET_ALLOW, first);
    if (continue_at(code, first, SECCOMP_RET_LOG, first + n)) {
        memcpy(code + first + n, arguments->code, arguments->size);
        replace_returns(code + first + n, n, SECCOMP_RET_ALLOW,
                        (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_LOG));
        size += arguments->size;
    }
    if (size > SANDBOX_FILTER_SIZE_MAX) {
        free(code);
        return -E2BIG;
    }
    *ret = (struct sandbox_filter){.code = code, .size = size};
    return 0;
}

int filter_compile(const char *settings, struct sandbox_filter *ret)
{
    struct sandbox_filter arguments = {0}, calls = {0};
    int r = 0;

    if (strncmp(settings, FILTER_ARGUMENTS, strlen(FILTER_ARGUMENTS)) == 0)
        r = compile_arguments(settings, &arguments, &settings);
    if (r == 0 && (*settings || !arguments.code))
        r = filter_compile_calls(settings, &calls);
    if (r == 0 && !(arguments.code && calls.code)) {
        *ret = calls.code ? calls : arguments;
        return 0;
    }
    if (r == 0)
        r = filter_join(&calls, &arguments, ret);
    free(arguments.code);
    free(calls.code);
    return r;
}

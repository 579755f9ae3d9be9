/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/filter.h"
#include "shared/base/cleanup.h"
#include "supervisor/config/sandbox/filter-private.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
    filter_put_arguments(file, group);
    filter_put_calls(file, group);
    failed = fclose(file) != 0;
    if (failed || size == 0)
        free(TAKE_PTR(*ret));
    return failed ? -ENOMEM : 0;
}

/* ---- the arguments of calls ---- */

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
        r = filter_add_arguments(context, settings, ret_rest);
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

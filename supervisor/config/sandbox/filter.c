/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/filter.h"
#include "shared/base/cleanup.h"
#include "supervisor/config/sandbox/filter-private.h"
#include <errno.h>
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

int filter_start(scmp_filter_ctx *context, uint32_t fallback)
{
    int r;

    *context = seccomp_init(fallback);
    if (!*context)
        return -ENOMEM;
    r = seccomp_attr_set(*context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    if (r == 0)
        r = seccomp_attr_set(*context, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree */
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

static int compile_arguments(const char *settings, struct sandbox_filter *ret)
{
    _cleanup_filter_ scmp_filter_ctx context = NULL;
    int r = filter_add_arguments(&context, settings);

    return r < 0 ? r : finish(context, ret);
}

int filter_compile(const char *settings, struct sandbox_filter *ret)
{
    if (strncmp(settings, FILTER_ARGUMENTS, strlen(FILTER_ARGUMENTS)) == 0)
        return compile_arguments(settings + strlen(FILTER_ARGUMENTS), ret);
    if (strncmp(settings, FILTER_CALLS, strlen(FILTER_CALLS)) == 0)
        return filter_compile_calls(settings + strlen(FILTER_CALLS), ret);
    return -EINVAL;
}

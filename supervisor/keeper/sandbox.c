/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox.h"
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int sandbox_limit_capabilities(uint64_t bounding)
{
    for (unsigned long n = 0; n < 64 && prctl(PR_CAPBSET_READ, n, 0, 0, 0) >= 0; n++)
        if (!(bounding >> n & 1) && prctl(PR_CAPBSET_DROP, n, 0, 0, 0) < 0)
            return -errno;
    return 0;
}

static int raise_ambient(uint64_t ambient)
{
    for (unsigned long n = 0; n < 64 && prctl(PR_CAPBSET_READ, n, 0, 0, 0) >= 0; n++)
        if (ambient >> n & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, n, 0, 0) < 0)
            return -errno;
    return 0;
}

int sandbox_set_capabilities(uint64_t ambient, bool only)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    bool changed = only;
    if (!only && syscall(SYS_capget, &header, data) < 0)
        return -errno;
    for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
        const uint32_t part = (uint32_t)(ambient >> 32 * i);
        changed = changed || data[i].inheritable != part;
        data[i].inheritable = part;
        if (only)
            data[i].permitted = data[i].effective = part;
    }
    if (changed && syscall(SYS_capset, &header, data) < 0)
        return -errno;
    return raise_ambient(ambient);
}

static int load_filter(const struct sandbox_filter *filter)
{
    const struct sock_fprog program = {
        .len = (unsigned short)(filter->size / sizeof(struct sock_filter)),
        .filter = filter->code,
    };
    /* Without CAP_SYS_ADMIN only a process that cannot gain privileges may load a filter; as with
     * systemd, it then is one. */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0)
        return 0;
    if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

int sandbox_apply(const struct sandbox *sandbox)
{
    int r = 0;
    if (sandbox->set_umask)
        (void)umask(sandbox->umask);
    for (size_t i = 0; r == 0 && i < sandbox->n_filters; i++)
        r = load_filter(&sandbox->filters[i]);
    return r;
}

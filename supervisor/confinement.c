/* SPDX-License-Identifier: MIT */
#include "supervisor/confinement.h"

#include "supervisor/config/sandbox/syscall-groups.h"
#include "supervisor/keeper/sandbox.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A list of forbidden calls, not of permitted ones: this program also looks up names, and then
 * runs arbitrary modules of the machine. A call fails instead of killing the process, because a
 * module may try calls that it does not need. There are no conditions, except for clone, so that
 * the kernel knows in advance which calls are allowed, and does not run the filter for them.
 */
static const char FORBIDDEN[] =
    "@clock @cpu-emulation @debug @module @mount @obsolete @raw-io @reboot @setuid @swap acct bpf "
    "capset fanotify_init fanotify_mark kcmp open_by_handle_at process_vm_readv process_vm_writev "
    "quotactl quotactl_fd setdomainname setfsgid setfsgid32 setfsuid setfsuid32 sethostname setns "
    "unshare userfaultfd vhangup";

#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

/* The half of clone's flags in which these are. */
#ifdef __s390__
#define FLAGS (offsetof(struct seccomp_data, args[1]) + sizeof(uint32_t))
#elif __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FLAGS (offsetof(struct seccomp_data, args[0]) + sizeof(uint32_t))
#else
#define FLAGS offsetof(struct seccomp_data, args[0])
#endif

#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

/* Written here, not by libseccomp: this needs no memory, and libseccomp 2.5 crashes, or makes a
 * filter that kills, when an allocation fails. Two steps for each call. */
struct filter {
    unsigned short n;
    struct sock_filter steps[512];
};

static int add(struct filter *filter, struct sock_filter step)
{
    if (filter->n == sizeof(filter->steps) / sizeof(filter->steps[0]))
        return -E2BIG;
    filter->steps[filter->n++] = step;
    return 0;
}

/* Refuses the call if the comparison with `value` is `truth`. */
static int add_refusal(struct filter *filter, unsigned short comparison, uint32_t value, bool truth)
{
    const unsigned short jump = BPF_JMP | comparison | BPF_K;
    int r = add(filter, (struct sock_filter)BPF_JUMP(jump, value, !truth, truth));

    return r == 0 ? add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, REFUSE)) : r;
}

static int add_load(struct filter *filter, size_t offset)
{
    return add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static int forbid_all(struct filter *filter, const char *names);

/* Not every machine has each of these calls. */
static int forbid(struct filter *filter, const char *name)
{
    int call;

    if (*name == '@')
        return forbid_all(filter, syscall_group_find(name));
    call = seccomp_syscall_resolve_name(name);
    return call < 0 ? 0 : add_refusal(filter, BPF_JEQ, (uint32_t)call, true);
}

static int forbid_all(struct filter *filter, const char *names)
{
    char name[64];
    int r = 0;

    for (size_t n; r == 0 && (n = strcspn(names, " ")) > 0; names += n + (names[n] == ' ')) {
        if (n >= sizeof(name))
            return -ENAMETOOLONG;
        memcpy(name, names, n);
        name[n] = '\0';
        r = forbid(filter, name);
    }
    return r;
}

/* What unshare would make, clone would make as well. A filter cannot read the flags of clone3: the
 * C library then uses clone. */
static int forbid_namespaces(struct filter *filter)
{
    const struct sock_filter steps[] = {
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3), /* over the next three */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)FLAGS),
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
        r = add(filter, steps[i]);
    return r == 0 ? add_refusal(filter, BPF_JSET, NAMESPACES, true) : r;
}

static int write_filter(struct filter *filter)
{
    int r = add_load(filter, offsetof(struct seccomp_data, arch));

    if (r == 0)
        r = add_refusal(filter, BPF_JEQ, seccomp_arch_native(), false);
    if (r == 0)
        r = add_load(filter, offsetof(struct seccomp_data, nr));
    if (r == 0)
        r = add_refusal(filter, BPF_JGE, SANDBOX_X32_CALLS, true);
    if (r == 0)
        r = forbid_all(filter, FORBIDDEN);
    if (r == 0)
        r = forbid_namespaces(filter); /* last: it loads something else */
    return r == 0 ? add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW))
                  : r;
}

/* A sanitizer's search for leaks traces this process. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

int confinement_apply(void)
{
    struct filter filter = {0};
    struct sock_fprog program = {.filter = filter.steps};
    int r;

    if (SANITIZED)
        return 0;
    r = write_filter(&filter);
    if (r < 0)
        return r;
    program.len = filter.n;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return -errno;
    return 0;
}

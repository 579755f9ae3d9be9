/* SPDX-License-Identifier: MIT */
#include "supervisor/confinement.h"

#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/config/sandbox/filter.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * A list of forbidden calls, not of permitted ones: this program also looks up names, and then
 * runs arbitrary modules of the machine. A call fails instead of killing the process, because a
 * module may try calls that it does not need. There are no conditions, except for clone, so that
 * the kernel knows in advance which calls are allowed, and does not run the filter for them. A
 * filter cannot read the flags of clone3: the C library then uses clone.
 */
static const char FORBIDDEN[] =
    "calls 1 ~@clock ~@cpu-emulation ~@debug ~@module ~@mount ~@obsolete ~@raw-io ~@reboot "
    "~@setuid "
    "~@swap ~acct ~bpf ~capset ~fanotify_init ~fanotify_mark ~kcmp ~open_by_handle_at "
    "~process_vm_readv ~process_vm_writev ~quotactl ~quotactl_fd ~setdomainname ~setfsgid "
    "~setfsgid32 ~setfsuid ~setfsuid32 ~sethostname ~setns ~unshare ~userfaultfd ~vhangup "
    "~clone3:ENOSYS";

#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

/* Where the filter finds the half of clone's flags that has these bits. */
#ifdef __s390__
#define FLAGS (offsetof(struct seccomp_data, args[1]) + sizeof(uint32_t))
#elif __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FLAGS (offsetof(struct seccomp_data, args[0]) + sizeof(uint32_t))
#else
#define FLAGS offsetof(struct seccomp_data, args[0])
#endif

/* Calls of other architectures fail. A list of [Sandbox], which this one is compiled as, would kill
 * the process. */
static void refuse_other_architectures(struct sock_filter *code, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (code[i].code == (BPF_RET | BPF_K) && code[i].k == SECCOMP_RET_KILL_PROCESS)
            code[i].k = SECCOMP_RET_ERRNO | EPERM;
}

/* clone can make the same namespaces as unshare. Written here, not by libseccomp, which crashes
 * (2.5), or makes a filter that kills, when an allocation fails. */
static int compile(struct sandbox_filter *ret)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)FLAGS),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    const struct sandbox_filter of_clone = {.code = steps, .size = sizeof(steps)};
    struct sandbox_filter calls;
    int r = filter_compile(FORBIDDEN, &calls);

    if (r < 0)
        return r;
    refuse_other_architectures(calls.code, calls.size / sizeof(struct sock_filter));
    r = filter_join(&calls, &of_clone, ret);
    free(calls.code);
    return r;
}

/* A sanitizer's search for leaks traces this process. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZED true
#else
#define SANITIZED false
#endif

int confinement_apply(void)
{
    struct sandbox_filter filter;
    int r;

    if (SANITIZED)
        return 0;
    r = compile(&filter);
    if (r < 0)
        return r;
    const struct sock_fprog program = {
        .len = (unsigned short)(filter.size / sizeof(struct sock_filter)), .filter = filter.code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        r = -errno;
    free(filter.code);
    return r;
}

/* ---- what it needs ---- */

/* Calls with invalid arguments: they change nothing, and fail with EPERM only if they are refused.
 * After ENOSYS, the C library does without clone3 and faccessat2. */
static const struct {
    const char *name;
    long number;
    bool needed;
} CALLS[] = {
    {"clone3", SYS_clone3, false},         {"memfd_create", SYS_memfd_create, true},
    {"pidfd_open", SYS_pidfd_open, true},  {"pidfd_send_signal", SYS_pidfd_send_signal, true},
    {"faccessat2", SYS_faccessat2, false},
};

bool confinement_permits_start(void)
{
    bool permitted = true;

    for (size_t i = 0; i < ELEMENTS(CALLS); i++) {
        (void)syscall(CALLS[i].number, -1, NULL, 0, 0, 0);
        if (errno != EPERM && errno != EACCES && !(errno == ENOSYS && CALLS[i].needed))
            continue;
        log_error("cannot start: the system call %s is refused: %s; allowed: a seccomp filter, "
                  "such as the profile of a container, that permits it",
                  CALLS[i].name, strerror(errno));
        permitted = false;
    }
    return permitted;
}

/* SPDX-License-Identifier: MIT */
/* Gives up all capabilities and nearly all system calls: see sample.h. */

#include "shared/base/cleanup.h"
#include "supervisor/trace/sample.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0
#endif

#define ARGUMENT(n)    ((uint32_t)offsetof(struct seccomp_data, args[n]))
#define LOAD(at)       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define RETURN(how)    BPF_STMT(BPF_RET | BPF_K, (how))
#define REFUSE         RETURN(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW_IF(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), RETURN(SECCOMP_RET_ALLOW)
/* Allows openat(2) for reading, below a descriptor: without this, libraries could open any path
 * that a hostile file names. */
#define ALLOW_OPENING                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 6), LOAD(ARGUMENT(0)),                      \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)AT_FDCWD, 3, 0), LOAD(ARGUMENT(2)),          \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_ACCMODE | O_CREAT | O_TRUNC | __O_TMPFILE, 1, 0),   \
        RETURN(SECCOMP_RET_ALLOW), REFUSE
/* Allows mmap(2) without a file and without PROT_EXEC. The libraries then read files instead: to
 * map a hostile file would give its holes memory, which is not the worker's. */
#define ALLOW_MAPPING                                                                              \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 6), LOAD(ARGUMENT(2)),                        \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 3, 0), LOAD(ARGUMENT(3)),                  \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1), RETURN(SECCOMP_RET_ALLOW),      \
        REFUSE
/* Allows ptrace(2) for detaching only. */
#define ALLOW_DETACHING                                                                            \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 4), LOAD(ARGUMENT(0)),                      \
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PTRACE_DETACH, 0, 1), RETURN(SECCOMP_RET_ALLOW),       \
        REFUSE
/* Allows the call if none of these bits is set in the low half of an argument. */
#define ALLOW_WITHOUT(call, n, bits)                                                               \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 4), LOAD(ARGUMENT(n)),                          \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 1, 0), RETURN(SECCOMP_RET_ALLOW), REFUSE

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};

    return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

int confine(void)
{
    struct sock_filter code[] = {
        LOAD(offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        LOAD(offsetof(struct seccomp_data, nr)),
        ALLOW_IF(SYS_read),
        ALLOW_IF(SYS_pread64),
        ALLOW_IF(SYS_lseek),
        ALLOW_IF(SYS_close),
        ALLOW_IF(SYS_fstat),
        ALLOW_IF(SYS_newfstatat),
        ALLOW_IF(SYS_readlinkat),
        ALLOW_IF(SYS_faccessat),
        ALLOW_IF(SYS_getcwd),
#ifdef SYS_readlink
        ALLOW_IF(SYS_readlink),
        ALLOW_IF(SYS_access),
#endif
        ALLOW_IF(SYS_munmap),
        ALLOW_IF(SYS_mremap),
        ALLOW_IF(SYS_madvise),
        ALLOW_IF(SYS_brk),
        ALLOW_IF(SYS_clock_gettime),
        ALLOW_IF(SYS_getrandom),
        ALLOW_IF(SYS_futex),
        ALLOW_IF(SYS_getpid),
        ALLOW_IF(SYS_exit_group),
        ALLOW_WITHOUT(SYS_fcntl, 1, ~3u), /* F_DUPFD, F_GETFD, F_SETFD, F_GETFL */
        ALLOW_MAPPING,
        ALLOW_WITHOUT(SYS_mprotect, 2, PROT_EXEC),
        ALLOW_OPENING,
        ALLOW_DETACHING,
        REFUSE,
    };
    const struct sock_fprog program = {.len = (unsigned short)ELEMENTS(code), .filter = code};
    int r = drop_capabilities();

    if (r < 0)
        return r;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return -errno;
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/sandbox-words.h"
#include "shared/base/cleanup.h"
#include "supervisor/config/syntax/values.h"
#include "supervisor/config/syntax/words.h"
#include <linux/sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define ERROR_MAX 4095 /* what a filter can return */

/* In the order of linux/capability.h. */
static const char CAPABILITIES[] =
    "CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_KILL, "
    "CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_LINUX_IMMUTABLE, CAP_NET_BIND_SERVICE, "
    "CAP_NET_BROADCAST, CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_IPC_OWNER, CAP_SYS_MODULE, "
    "CAP_SYS_RAWIO, CAP_SYS_CHROOT, CAP_SYS_PTRACE, CAP_SYS_PACCT, CAP_SYS_ADMIN, CAP_SYS_BOOT, "
    "CAP_SYS_NICE, CAP_SYS_RESOURCE, CAP_SYS_TIME, CAP_SYS_TTY_CONFIG, CAP_MKNOD, CAP_LEASE, "
    "CAP_AUDIT_WRITE, CAP_AUDIT_CONTROL, CAP_SETFCAP, CAP_MAC_OVERRIDE, CAP_MAC_ADMIN, "
    "CAP_SYSLOG, CAP_WAKE_ALARM, CAP_BLOCK_SUSPEND, CAP_AUDIT_READ, CAP_PERFMON, CAP_BPF, "
    "CAP_CHECKPOINT_RESTORE";

/* In the order of linux/socket.h. */
static const char FAMILIES[] =
    "AF_UNSPEC, AF_UNIX, AF_INET, AF_AX25, AF_IPX, AF_APPLETALK, AF_NETROM, AF_BRIDGE, AF_ATMPVC, "
    "AF_X25, AF_INET6, AF_ROSE, AF_DECnet, AF_NETBEUI, AF_SECURITY, AF_KEY, AF_NETLINK, "
    "AF_PACKET, AF_ASH, AF_ECONET, AF_ATMSVC, AF_RDS, AF_SNA, AF_IRDA, AF_PPPOX, AF_WANPIPE, "
    "AF_LLC, AF_IB, AF_MPLS, AF_CAN, AF_TIPC, AF_BLUETOOTH, AF_IUCV, AF_RXRPC, AF_ISDN, "
    "AF_PHONET, AF_IEEE802154, AF_CAIF, AF_ALG, AF_NFC, AF_VSOCK, AF_KCM, AF_QIPCRTR, AF_SMC, "
    "AF_XDP, AF_MCTP";

static const char NAMESPACES[] = "cgroup, ipc, net, mnt, pid, user, uts";
static const unsigned long NAMESPACE_FLAGS[SANDBOX_NAMESPACES] = {
    CLONE_NEWCGROUP, CLONE_NEWIPC,  CLONE_NEWNET, CLONE_NEWNS,
    CLONE_NEWPID,    CLONE_NEWUSER, CLONE_NEWUTS,
};

int sandbox_capability(const char *word)
{
    return words_find(CAPABILITIES, word);
}

int sandbox_family(const char *word)
{
    return words_find(FAMILIES, strcmp(word, "AF_LOCAL") == 0 ? "AF_UNIX" : word);
}

int sandbox_namespace(const char *word)
{
    return words_find(NAMESPACES, word);
}

unsigned long sandbox_namespace_flag(int number)
{
    return NAMESPACE_FLAGS[number];
}

static int error_of_name(const char *name)
{
    for (int error = 1; error <= ERROR_MAX; error++) {
        const char *known = strerrorname_np(error);

        if (known && strcmp(known, name) == 0)
            return error;
    }
    return -1;
}

int sandbox_error(const char *word)
{
    uint64_t number;

    if (strcmp(word, "kill") == 0)
        return 0;
    if (values_count(word, &number) == 0)
        return number >= 1 && number <= ERROR_MAX ? (int)number : -1;
    return error_of_name(word);
}

bool sandbox_is_syscall(const char *word)
{
    const bool forbidden = *word == '~';
    const char *colon = strchrnul(word, ':');
    char name[64];

    word = sandbox_word(word);
    if (*colon && (!forbidden || sandbox_error(colon + 1) < 0))
        return false;
    if ((size_t)(colon - word) >= sizeof(name))
        return false;
    (void)snprintf(name, sizeof(name), "%.*s", (int)(colon - word), word);
    return *name == '@' ? syscall_group_find(name) != NULL
                        : seccomp_syscall_resolve_name(name) != __NR_SCMP_ERROR;
}

const char *sandbox_word(const char *word)
{
    return *word == '~' ? word + 1 : word;
}

uint64_t sandbox_set(const struct config_strings *list, int (*find)(const char *))
{
    uint64_t set = list->n > 0 && *list->strings[0] == '~' ? UINT64_MAX : 0;

    for (size_t i = 0; i < list->n; i++) {
        const char *word = list->strings[i];
        const int number = find(sandbox_word(word));

        if (number < 0)
            set = words_find("no", word) == 0          ? UINT64_MAX
                  : words_find("yes, none", word) >= 0 ? 0
                                                       : set;
        else if (*word == '~')
            set &= ~(UINT64_C(1) << number);
        else
            set |= UINT64_C(1) << number;
    }
    return set;
}

/* clang-format off */
/* The output of `systemd-analyze syscall-filter` of systemd 252, without @known. */
static const struct {
    const char *name, *members;
} GROUPS[] = {
    {"@aio",
     "io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit "
     "io_uring_enter io_uring_register io_uring_setup"},
    {"@basic-io",
     "_llseek close close_range dup dup2 dup3 lseek pread64 preadv preadv2 pwrite64 pwritev "
     "pwritev2 read readv write writev"},
    {"@chown", "chown chown32 fchown fchown32 fchownat lchown lchown32"},
    {"@clock",
     "adjtimex clock_adjtime clock_adjtime64 clock_settime clock_settime64 settimeofday"},
    {"@cpu-emulation", "modify_ldt subpage_prot switch_endian vm86 vm86old"},
    {"@debug",
     "lookup_dcookie perf_event_open pidfd_getfd ptrace rtas s390_runtime_instr "
     "sys_debug_setcontext"},
    {"@default",
     "arch_prctl brk cacheflush clock_getres clock_getres_time64 clock_gettime clock_gettime64 "
     "clock_nanosleep clock_nanosleep_time64 execve exit exit_group futex futex_time64 "
     "futex_waitv get_robust_list get_thread_area getegid getegid32 geteuid geteuid32 getgid "
     "getgid32 getgroups getgroups32 getpgid getpgrp getpid getppid getrandom getresgid "
     "getresgid32 getresuid getresuid32 getrlimit getsid gettid gettimeofday getuid getuid32 "
     "membarrier mmap mmap2 mprotect munmap nanosleep pause prlimit64 restart_syscall "
     "riscv_flush_icache riscv_hwprobe rseq rt_sigreturn sched_getaffinity sched_yield "
     "set_robust_list set_thread_area set_tid_address set_tls sigreturn time ugetrlimit "
     "uretprobe"},
    {"@file-system",
     "access chdir chmod close creat faccessat faccessat2 fallocate fchdir fchmod fchmodat "
     "fchmodat2 fcntl fcntl64 fgetxattr flistxattr fremovexattr fsetxattr fstat fstat64 "
     "fstatat64 fstatfs fstatfs64 ftruncate ftruncate64 futimesat getcwd getdents getdents64 "
     "getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch lgetxattr link "
     "linkat listxattr llistxattr lremovexattr lsetxattr lstat lstat64 mkdir mkdirat mknod "
     "mknodat newfstatat oldfstat oldlstat oldstat open openat openat2 readlink readlinkat "
     "removexattr rename renameat renameat2 rmdir setxattr stat stat64 statfs statfs64 statx "
     "symlink symlinkat truncate truncate64 unlink unlinkat utime utimensat utimensat_time64 "
     "utimes"},
    {"@io-event",
     "_newselect epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 "
     "epoll_wait epoll_wait_old eventfd eventfd2 poll ppoll ppoll_time64 pselect6 "
     "pselect6_time64 select"},
    {"@ipc",
     "ipc memfd_create mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 "
     "mq_timedsend mq_timedsend_time64 mq_unlink msgctl msgget msgrcv msgsnd pipe pipe2 "
     "process_madvise process_vm_readv process_vm_writev semctl semget semop semtimedop "
     "semtimedop_time64 shmat shmctl shmdt shmget"},
    {"@keyring", "add_key keyctl request_key"},
    {"@memlock", "mlock mlock2 mlockall munlock munlockall"},
    {"@module", "delete_module finit_module init_module"},
    {"@mount",
     "chroot fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree pivot_root "
     "umount umount2"},
    {"@network-io",
     "accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom "
     "recvmmsg recvmmsg_time64 recvmsg send sendmmsg sendmsg sendto setsockopt shutdown socket "
     "socketcall socketpair"},
    {"@obsolete",
     "_sysctl afs_syscall bdflush break create_module ftime get_kernel_syms getpmsg gtty idle "
     "lock mpx prof profil putpmsg query_module security sgetmask ssetmask stime stty sysfs "
     "tuxcall ulimit uselib ustat vserver"},
    {"@pkey", "pkey_alloc pkey_free pkey_mprotect"},
    {"@privileged",
     "@chown @clock @module @raw-io @reboot @swap _sysctl acct bpf capset chroot fanotify_init "
     "fanotify_mark nfsservctl open_by_handle_at pivot_root quotactl quotactl_fd setdomainname "
     "setfsuid setfsuid32 setgroups setgroups32 sethostname setresuid setresuid32 setreuid "
     "setreuid32 setuid setuid32 vhangup"},
    {"@process",
     "capget clone clone3 execveat fork getrusage kill pidfd_open pidfd_send_signal prctl "
     "rt_sigqueueinfo rt_tgsigqueueinfo setns swapcontext tgkill times tkill unshare vfork wait4 "
     "waitid waitpid"},
    {"@raw-io",
     "ioperm iopl pciconfig_iobase pciconfig_read pciconfig_write s390_pci_mmio_read "
     "s390_pci_mmio_write"},
    {"@reboot", "kexec_file_load kexec_load reboot"},
    {"@resources",
     "ioprio_set mbind migrate_pages move_pages nice sched_setaffinity sched_setattr "
     "sched_setparam sched_setscheduler set_mempolicy set_mempolicy_home_node setpriority "
     "setrlimit"},
    {"@setuid",
     "setgid setgid32 setgroups setgroups32 setregid setregid32 setresgid setresgid32 setresuid "
     "setresuid32 setreuid setreuid32 setuid setuid32"},
    {"@signal",
     "rt_sigaction rt_sigpending rt_sigprocmask rt_sigsuspend rt_sigtimedwait "
     "rt_sigtimedwait_time64 sigaction sigaltstack signal signalfd signalfd4 sigpending "
     "sigprocmask sigsuspend"},
    {"@swap", "swapoff swapon"},
    {"@sync", "fdatasync fsync msync sync sync_file_range sync_file_range2 syncfs"},
    {"@system-service",
     "@aio @basic-io @chown @default @file-system @io-event @ipc @keyring @memlock @network-io "
     "@process @resources @setuid @signal @sync @timer arm_fadvise64_64 capget capset "
     "copy_file_range fadvise64 fadvise64_64 flock get_mempolicy getcpu getpriority ioctl "
     "ioprio_get kcmp madvise mremap name_to_handle_at oldolduname olduname personality "
     "readahead readdir remap_file_pages sched_get_priority_max sched_get_priority_min "
     "sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval "
     "sched_rr_get_interval_time64 sched_yield sendfile sendfile64 setfsgid setfsgid32 setfsuid "
     "setfsuid32 setpgid setsid splice sysinfo tee umask uname userfaultfd vmsplice"},
    {"@timer",
     "alarm getitimer setitimer timer_create timer_delete timer_getoverrun timer_gettime "
     "timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime "
     "timerfd_gettime64 timerfd_settime timerfd_settime64 times"},
};
/* clang-format on */

const char *syscall_group_find(const char *name)
{
    for (size_t i = 0; i < ELEMENTS(GROUPS); i++)
        if (strcmp(GROUPS[i].name, name) == 0)
            return GROUPS[i].members;
    return NULL;
}

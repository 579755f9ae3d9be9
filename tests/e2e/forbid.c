/* SPDX-License-Identifier: MIT */
/*
 * Runs a command under a seccomp filter.
 *
 * forbid CALL ERRNO COMMAND...     the system call CALL, one of calls[], fails with ERRNO: EPERM as
 * under a filter, ENOSYS as in a kernel without it forbid container COMMAND...      what container
 * engines forbid by default fails as it does there forbid old-container COMMAND...  the same, and
 * calls that filters of former years do not know
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET |     \
     CLONE_NEWCGROUP)

/* Of a container without capabilities beyond the usual ones. */
static const unsigned denied[] = {
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_unshare,
    SYS_setns,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_fanotify_init,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_process_madvise,
    SYS_open_by_handle_at,
    SYS_lookup_dcookie,
    SYS_mbind,
    SYS_get_mempolicy,
    SYS_set_mempolicy,
    SYS_migrate_pages,
    SYS_move_pages,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_syslog,
    SYS_vhangup,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_setdomainname,
};

/* Allowed by now. All have substitutes. */
static const unsigned unknown[] = {449 /* futex_waitv */, SYS_epoll_pwait2};

static struct sock_filter code[160];
static unsigned short length;

static void add(struct sock_filter instruction)
{
    code[length++] = instruction;
}

static void load(size_t offset)
{
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void fail_with(unsigned error)
{
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error));
}

/* The number of the call is loaded. */
static void forbid(unsigned call, unsigned error)
{
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    fail_with(error);
}

/* glibc falls back on clone if clone3 is not there; a filter cannot read its flags. */
static void forbid_namespaces(void)
{
    forbid(SYS_clone3, ENOSYS);
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
    load(offsetof(struct seccomp_data, args[0]));
    add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1));
    fail_with(EPERM);
    load(offsetof(struct seccomp_data, nr));
}

static void forbid_as_containers_do(bool old)
{
    for (size_t i = 0; i < ELEMENTS(denied); i++)
        forbid(denied[i], EPERM);
    for (size_t i = 0; old && i < ELEMENTS(unknown); i++)
        forbid(unknown[i], EPERM);
    forbid_namespaces();
}

static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    {"ptrace", SYS_ptrace},
    {"io_uring_setup", SYS_io_uring_setup},
    {"io_setup", SYS_io_setup},
    {"signalfd", SYS_signalfd4},
    {"clone3", SYS_clone3},
    {"close_range", SYS_close_range},
    {"memfd_create", SYS_memfd_create},
    {"pidfd_open", SYS_pidfd_open},
    {"pidfd_send_signal", SYS_pidfd_send_signal},
    {"faccessat2", SYS_faccessat2},
};

static unsigned number_of(const char *call)
{
    size_t i = 0;

    while (i < ELEMENTS(calls) - 1 && strcmp(calls[i].name, call) != 0)
        i++;
    return calls[i].number;
}

static int run(char **command)
{
    struct sock_fprog filter = {.len = length, .filter = code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0) {
        perror("forbid: seccomp");
        return 77;
    }
    execvp(command[0], command);
    perror(command[0]);
    return 127;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const bool old = strcmp(argv[1], "old-container") == 0;
    const bool container = old || strcmp(argv[1], "container") == 0;
    if (!container && argc < 4)
        return 2;
    load(offsetof(struct seccomp_data, nr));
    if (container)
        forbid_as_containers_do(old);
    else
        forbid(number_of(argv[1]), strcmp(argv[2], "ENOSYS") == 0 ? ENOSYS : EPERM);
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    return run(argv + (container ? 2 : 3));
}

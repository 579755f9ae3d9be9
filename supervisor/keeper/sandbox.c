/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox.h"
#include "shared/base/scm.h"
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

bool sandbox_may_mount(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    return syscall(SYS_capget, &header, data) == 0 &&
           data[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN);
}

int sandbox_limit_capabilities(uint64_t bounding)
{
    int r;
    for (unsigned long n = 0; n < 64 && (r = prctl(PR_CAPBSET_READ, n, 0, 0, 0)) >= 0; n++)
        if (r > 0 && !(bounding >> n & 1) && prctl(PR_CAPBSET_DROP, n, 0, 0, 0) < 0)
            return -errno;
    return 0;
}

static int raise_ambient(uint64_t ambient)
{
    for (unsigned long n = 0; n < 64 && ambient >> n != 0; n++)
        if (ambient >> n & 1 && prctl(PR_CAPBSET_READ, n, 0, 0, 0) >= 0 &&
            prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, n, 0, 0) < 0)
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

/* ---- the filter ---- */

/* Returns a descriptor if the flags ask for one, else 0; or -errno. */
static int load_program(const struct sock_filter *code, size_t n, unsigned long flags)
{
    const struct sock_fprog program = {
        .len = (unsigned short)n,
        .filter = (struct sock_filter *)(uintptr_t)code,
    };
    /* Without CAP_SYS_ADMIN only a process that cannot gain privileges may load a filter; as with
     * systemd, it then is one. */
    long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (r >= 0)
        return (int)r;
    if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return r < 0 ? -errno : (int)r;
}

/* ---- a filter that reports a forbidden call instead of killing ---- */

/*
 * The filter comes with a descriptor, the listener, which is sent to the supervisor. After the
 * filter is loaded, two calls must still work that it may forbid: to send the descriptor, and to
 * load one more filter, which forbids the two. So that this one touches no call of the program's,
 * both have flags that no program uses together.
 */
#define HANDING_FLAGS (MSG_NOSIGNAL | MSG_CONFIRM | MSG_DONTROUTE)
#define CLOSING_FLAGS (SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_LOG)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW_HALF 0
#else
#define LOW_HALF 4
#endif

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define LOAD_INT(arg)                                                                              \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[arg]) + LOW_HALF)
/* Continues, or jumps to instruction `else_to`; `at` is its own number. */
#define CHECK(at, value, else_to)                                                                  \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (else_to) - (at)-1)
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))

/* A signal does not interrupt a call that the receiver decides about (Linux 5.19). */
#ifdef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define WAIT_KILLABLE_RECV SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#else
#define WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define HANDING_SIZE 11

/* Decides about the two calls; the code behind it, about all others. The kernel still knows
 * without running this which other calls are allowed. */
static void put_handing(struct sock_filter *code, int socket, unsigned action)
{
    const struct sock_filter handing[HANDING_SIZE] = {
        [0] = LOAD(nr),        [1] = CHECK(1, SYS_sendmsg, 7),
        [2] = LOAD_INT(0),     [3] = CHECK(3, (unsigned)socket, HANDING_SIZE),
        [4] = LOAD_INT(2),     [5] = CHECK(5, HANDING_FLAGS, HANDING_SIZE),
        [6] = RETURN(action),  [7] = CHECK(7, SYS_seccomp, HANDING_SIZE),
        [8] = LOAD_INT(1),     [9] = CHECK(9, CLOSING_FLAGS, HANDING_SIZE),
        [10] = RETURN(action),
    };
    for (size_t i = 0; i < HANDING_SIZE; i++)
        code[i] = handing[i];
}

/* Loads a copy of the filter that lets the two calls through. Returns the listener or -errno. */
static int load_telling(const struct sandbox_filter *filter, int socket)
{
    /* Not on the stack, each page of which would be touched. */
    static struct sock_filter
        code[HANDING_SIZE + SANDBOX_FILTER_SIZE_MAX / sizeof(struct sock_filter)];
    const size_t n = HANDING_SIZE + filter->size / sizeof(code[0]);
    put_handing(code, socket, SECCOMP_RET_ALLOW);
    memcpy(code + HANDING_SIZE, filter->code, filter->size);
    for (size_t i = HANDING_SIZE; i < n; i++)
        if (code[i].code == (BPF_RET | BPF_K) &&
            (code[i].k == SECCOMP_RET_KILL_PROCESS || code[i].k == SECCOMP_RET_LOG))
            code[i].k = SECCOMP_RET_USER_NOTIF;
    return load_program(code, n, SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT_KILLABLE_RECV);
}

static int send_listener(int socket, int listener)
{
    char byte = 0;
    union scm_control control;
    struct iovec iovec = {.iov_base = &byte, .iov_len = sizeof(byte)};
    struct msghdr message = {.msg_iov = &iovec, .msg_iovlen = 1};
    scm_attach(&message, &control, &listener, 1);
    return syscall(SYS_sendmsg, socket, &message, HANDING_FLAGS) < 0 ? -errno : 0;
}

static int close_handing(int socket)
{
    struct sock_filter code[HANDING_SIZE + 1];
    put_handing(code, socket, SECCOMP_RET_KILL_PROCESS);
    code[HANDING_SIZE] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    return load_program(code, HANDING_SIZE + 1, CLOSING_FLAGS);
}

/* Returns -EBUSY if this process has a listener already, from outside. */
static int tell(const struct sandbox_filter *filter, int socket)
{
    int r = load_telling(filter, socket);
    if (r >= 0)
        r = send_listener(socket, r);
    return r < 0 ? r : close_handing(socket);
}

bool sandbox_gives_up_privileges(const struct sandbox *sandbox)
{
    return sandbox->filter.size > 0 && !sandbox_may_mount();
}

int sandbox_apply(const struct sandbox *sandbox, int socket)
{
    const struct sandbox_filter *filter = &sandbox->filter;
    int r = -EBUSY;
    if (sandbox->set_umask)
        (void)umask(sandbox->umask);
    if (filter->size == 0)
        return 0;
    if (socket >= 0)
        r = tell(filter, socket);
    return r == -EBUSY ? load_program(filter->code, filter->size / sizeof(struct sock_filter), 0)
                       : r;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/sandbox-words.h"
#include "shared/base/cleanup.h"
#include "supervisor/config/sandbox/syscall-groups.h"
#include "supervisor/config/syntax/values.h"
#include "supervisor/config/syntax/words.h"
#include <linux/sched.h>
#include <seccomp.h>
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

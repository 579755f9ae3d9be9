/* SPDX-License-Identifier: MIT */

/* [Sandbox]: from its keys to what the kernel then does. */

#include "shared/base/landlock.h"
#include "supervisor/config/sandbox/sandbox-compile.h"
#include "supervisor/config/sandbox/sandbox-words.h"
#include "supervisor/keeper/sandbox.h"
#include "tests/unit/config-directory.h"
#include "tests/unit/suite.h"
#include <linux/capability.h>
#include <linux/filter.h>
#include <sched.h>
#include <sys/syscall.h>

static struct config_group *load_sandbox(const char *keys)
{
    char text[1024];

    (void)snprintf(text, sizeof(text), "[Sandbox]\n%s", keys);
    return load_group(text);
}

/* Returns what `probe` returns in a process in this sandbox: 0 to 255, or -signal. */
static int probe_in(const char *keys, int (*probe)(void))
{
    struct config_group *group = load_sandbox(keys);
    int status;
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        const int r = sandbox_apply(group->sandbox, -1);
        /* A sanitizer's _exit() makes calls that may be forbidden. */
        syscall(SYS_exit_group, r < 0 ? 255 : probe());
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- system calls ---- */

static int error_of(long result)
{
    return result < 0 ? errno : 0;
}

static int try_getpid(void)
{
    return error_of(syscall(SYS_getpid));
}

static int try_sync(void)
{
    return syscall(SYS_fdatasync, -1) < 0 && errno == EBADF ? 0 : error_of(-1);
}

static int try_personality(void)
{
    return error_of(syscall(SYS_personality, 0xffffffff));
}

static int try_swapoff(void)
{
    return error_of(syscall(SYS_swapoff, NULL));
}

static int try_mount(void)
{
    return error_of(syscall(SYS_mount, NULL, "/", NULL, 0, NULL));
}

TEST(a_list_allows_its_calls_and_what_every_program_needs)
{
    ck_assert_int_eq(probe_in("SystemCallFilter=fdatasync\n", try_sync), 0);
    ck_assert_int_eq(probe_in("SystemCallFilter=fdatasync\n", try_getpid), 0);
    ck_assert_int_eq(probe_in("SystemCallFilter=fdatasync\n", try_personality), -SIGSYS);
    ck_assert_int_eq(probe_in("SystemCallFilter=@sync\n", try_sync), 0);
    ck_assert_int_eq(probe_in("SystemCallFilter=@sync\n", try_personality), -SIGSYS);
}

TEST(groups_contain_other_groups)
{
    ck_assert_int_eq(probe_in("SystemCallFilter=@system-service\n", try_sync), 0);
    ck_assert_int_eq(probe_in("SystemCallFilter=@system-service\n", try_personality), 0);
    ck_assert_int_eq(probe_in("SystemCallFilter=@system-service\n", try_mount), -SIGSYS);
    ck_assert_int_eq(probe_in("SystemCallFilter=~@privileged\n", try_swapoff), -SIGSYS);
}

TEST(a_list_with_a_tilde_forbids_its_calls)
{
    ck_assert_int_eq(probe_in("SystemCallFilter=~fdatasync personality\n", try_sync), -SIGSYS);
    ck_assert_int_eq(probe_in("SystemCallFilter=~fdatasync personality\n", try_personality),
                     -SIGSYS);
    ck_assert_int_eq(probe_in("SystemCallFilter=~fdatasync\n", try_personality), 0);
}

TEST(later_lines_add_or_take_away)
{
    static const char allow[] = "SystemCallFilter=@sync\nSystemCallFilter=personality\n";
    static const char take[] = "SystemCallFilter=@system-service\nSystemCallFilter=~@sync\n";
    static const char give[] = "SystemCallFilter=~@sync personality\nSystemCallFilter=fdatasync\n";

    ck_assert_int_eq(probe_in(allow, try_sync), 0);
    ck_assert_int_eq(probe_in(allow, try_personality), 0);
    ck_assert_int_eq(probe_in(take, try_sync), -SIGSYS);
    ck_assert_int_eq(probe_in(take, try_personality), 0);
    ck_assert_int_eq(probe_in(give, try_sync), 0);
    ck_assert_int_eq(probe_in(give, try_personality), -SIGSYS);
}

TEST(a_forbidden_call_fails_with_the_error_that_is_wanted)
{
    static const char keys[] = "SystemCallErrorNumber=EPERM\n"
                               "SystemCallFilter=~fdatasync:ENOTTY personality mount:kill\n";

    ck_assert_int_eq(probe_in(keys, try_sync), ENOTTY);
    ck_assert_int_eq(probe_in(keys, try_personality), EPERM);
    ck_assert_int_eq(probe_in(keys, try_mount), -SIGSYS);
    ck_assert_int_eq(
        probe_in("SystemCallFilter=@sync\nSystemCallFilter=~fdatasync:ENOTTY\n", try_sync), ENOTTY);
    ck_assert_int_eq(probe_in("SystemCallErrorNumber=71\nSystemCallFilter=@sync\n", try_mount), 71);
}

/* i386's getpid(), whose number is that of writev() for others. */
static int try_foreign_call(void)
{
#ifdef __x86_64__
    long result = 20;

    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return result < 0 ? 1 : 0;
#else
    return 0;
#endif
}

TEST(calls_of_another_architecture_end_the_process)
{
#ifdef __x86_64__
    if (probe_in("UMask=0077\n", try_foreign_call) != 0) {
        printf("skipped: this kernel has no calls of another architecture\n");
        return;
    }
    ck_assert_int_eq(probe_in("SystemCallArchitectures=native\n", try_foreign_call), -SIGSYS);
    ck_assert_int_eq(probe_in("SystemCallFilter=@system-service\n", try_foreign_call), -SIGSYS);
#endif
}

/* ---- their arguments ---- */

static int try_unix(void)
{
    return error_of(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int try_inet(void)
{
    return error_of(socket(AF_INET, SOCK_STREAM, 0));
}

static int try_netlink(void)
{
    return error_of(socket(AF_NETLINK, SOCK_RAW, 0));
}

static int try_disguised_inet(void)
{
    return error_of(syscall(SYS_socket, AF_INET | 1L << 32, SOCK_STREAM, 0));
}

TEST(only_the_listed_families_of_sockets_are_there)
{
    static const char some[] = "RestrictAddressFamilies=AF_UNIX AF_NETLINK\n";
    static const char others[] = "RestrictAddressFamilies=~AF_INET\n";

    ck_assert_int_eq(probe_in(some, try_unix), 0);
    ck_assert_int_eq(probe_in(some, try_netlink), 0);
    ck_assert_int_eq(probe_in(some, try_inet), EAFNOSUPPORT);
    ck_assert_int_eq(probe_in(some, try_disguised_inet), EAFNOSUPPORT);
    ck_assert_int_eq(probe_in(others, try_unix), 0);
    ck_assert_int_eq(probe_in(others, try_inet), EAFNOSUPPORT);
    ck_assert_int_eq(probe_in(others, try_disguised_inet), EAFNOSUPPORT);
    ck_assert_int_eq(probe_in("RestrictAddressFamilies=none\n", try_unix), EAFNOSUPPORT);
}

static int try_user_namespace(void)
{
    return error_of(unshare(CLONE_NEWUSER));
}

static int try_uts_namespace_by_clone(void)
{
    long pid = syscall(SYS_clone, CLONE_NEWUTS | SIGCHLD, NULL, NULL, NULL, NULL);

    if (pid == 0)
        _exit(0);
    return error_of(pid);
}

static int try_clone3(void)
{
    return error_of(syscall(SYS_clone3, NULL, 0));
}

static int try_setns(void)
{
    return error_of(setns(-1, 0));
}

static int try_fork(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    return error_of(pid);
}

TEST(only_the_listed_namespaces_are_made)
{
    const int expected = error_of(unshare(CLONE_NEWUTS)) == 0 ? 0 : EPERM;

    ck_assert_int_eq(probe_in("RestrictNamespaces=yes\n", try_user_namespace), EPERM);
    ck_assert_int_eq(probe_in("RestrictNamespaces=yes\n", try_uts_namespace_by_clone), EPERM);
    ck_assert_int_eq(probe_in("RestrictNamespaces=yes\n", try_clone3), ENOSYS);
    ck_assert_int_eq(probe_in("RestrictNamespaces=yes\n", try_setns), EPERM);
    ck_assert_int_eq(probe_in("RestrictNamespaces=yes\n", try_fork), 0);
    ck_assert_int_eq(probe_in("RestrictNamespaces=uts\n", try_user_namespace), EPERM);
    ck_assert_int_eq(probe_in("RestrictNamespaces=uts\n", try_uts_namespace_by_clone), expected);
    ck_assert_int_eq(probe_in("RestrictNamespaces=~user\n", try_user_namespace), EPERM);
    ck_assert_int_eq(probe_in("RestrictNamespaces=~user\n", try_uts_namespace_by_clone), expected);
}

/* ---- the rest ---- */

static int tell_umask(void)
{
    return (int)umask(0);
}

TEST(the_mask_of_file_modes_is_set)
{
    ck_assert_int_eq(probe_in("UMask=0057\n", tell_umask), 057);
    ck_assert_int_eq(probe_in("UMask=7\n", tell_umask), 7);
}

static uint64_t bit(int number)
{
    return UINT64_C(1) << number;
}

TEST(capabilities_are_listed_as_in_systemd)
{
    static const struct {
        const char *keys;
        uint64_t bounding, ambient;
    } cases[] = {
        {"CapabilityBoundingSet=none\n", 0, 0},
        {"CapabilityBoundingSet=CAP_KILL CAP_CHOWN\n", 1 << CAP_KILL | 1 << CAP_CHOWN, 0},
        {"CapabilityBoundingSet=CAP_KILL\nCapabilityBoundingSet=CAP_CHOWN\n",
         1 << CAP_KILL | 1 << CAP_CHOWN, 0},
        {"CapabilityBoundingSet=CAP_KILL CAP_CHOWN\nCapabilityBoundingSet=~CAP_CHOWN\n",
         1 << CAP_KILL, 0},
        {"CapabilityBoundingSet=~CAP_KILL\n", ~(UINT64_C(1) << CAP_KILL), 0},
        {"CapabilityBoundingSet=~\n", UINT64_MAX, 0},
        {"AmbientCapabilities=CAP_KILL\n", UINT64_MAX, 1 << CAP_KILL},
        {"CapabilityBoundingSet=none\nAmbientCapabilities=CAP_KILL\n", 1 << CAP_KILL,
         1 << CAP_KILL},
    };

    for (size_t i = 0; i < ELEMENTS(cases); i++) {
        struct config_group *group = load_sandbox(cases[i].keys);

        ck_assert_msg(group->sandbox->bounding == cases[i].bounding, "%s", cases[i].keys);
        ck_assert_msg(group->sandbox->ambient == cases[i].ambient, "%s", cases[i].keys);
    }
    ck_assert_int_eq(sandbox_capability("CAP_CHECKPOINT_RESTORE"), CAP_CHECKPOINT_RESTORE);
    ck_assert_int_eq(sandbox_capability("CAP_SYSLOG"), CAP_SYSLOG);
    ck_assert_int_eq(sandbox_family("AF_LOCAL"), AF_UNIX);
    ck_assert_int_eq(sandbox_family("AF_INET6"), AF_INET6);
    ck_assert_int_eq(sandbox_family("AF_XDP"), AF_XDP);
}

TEST(a_user_cannot_gain_privileges_unless_that_is_wanted)
{
    struct config_group *group = load_group("User=nobody\n[Sandbox]\nUMask=0\n");

    ck_assert(group->sandbox->no_new_privileges);
    ck_assert_uint_eq(group->sandbox->bounding, 0);
    group = load_group("User=nobody\n[Sandbox]\nNoNewPrivileges=no\n"
                       "AmbientCapabilities=CAP_NET_BIND_SERVICE\n");
    ck_assert(!group->sandbox->no_new_privileges);
    ck_assert_uint_eq(group->sandbox->bounding, bit(CAP_NET_BIND_SERVICE));
    group = load_group("[Sandbox]\nUMask=0\n");
    ck_assert(!group->sandbox->no_new_privileges);
    ck_assert_uint_eq(group->sandbox->bounding, UINT64_MAX);
}

/* In a domain of Landlock nothing can be mounted, which systemd's keys alone do not forbid. */
TEST(signals_and_sockets_are_scoped_where_that_takes_nothing_away)
{
    struct config_group *group =
        load_group("User=nobody\n[Sandbox]\nProtectSystem=strict\nRestrictNamespaces=user\n");

    ck_assert_uint_eq(group->sandbox->scopes, 0);
    group = load_group("User=nobody\n[Sandbox]\nProfile=strict\nRestrictNamespaces=no\n");
    ck_assert_uint_eq(group->sandbox->scopes, 0);
    group = load_group("User=nobody\n[Sandbox]\nProfile=strict\nStrict=yes\n");
    ck_assert(group->sandbox->strict);
    ck_assert_uint_eq(group->sandbox->scopes,
                      LANDLOCK_SCOPE_SIGNALS | LANDLOCK_SCOPE_ABSTRACT_SOCKETS);
    group = load_group("User=nobody\n[Sandbox]\nProfile=strict\nPrivateNetwork=no\n");
    ck_assert_uint_eq(group->sandbox->scopes, LANDLOCK_SCOPE_SIGNALS);
    group = load_group("User=nobody\n[Pool]\nTemplate=slot\n");
    ck_assert_uint_eq(group->sandbox->scopes, LANDLOCK_SCOPE_SIGNALS);
}

TEST(a_group_without_these_keys_has_no_sandbox)
{
    struct config_group *group = load_group("User=nobody\n");

    ck_assert_ptr_null(group->sandbox);
    group = load_group("[Sandbox]\nSystemCallFilter=@sync\nSystemCallFilter=\n"
                       "RestrictNamespaces=no\nMemoryDenyWriteExecute=no\n");
    ck_assert_ptr_null(group->sandbox);
}

TEST(mistakes_are_told_with_what_is_allowed)
{
    static const char *const mistakes[][2] = {
        {"SystemCallFilter=opne\n", "unknown system call, group or error"},
        {"SystemCallFilter=@filesystem\n", "unknown system call, group or error"},
        {"SystemCallFilter=open:EPERM\n", "an error in a line without ~"},
        {"SystemCallFilter=~open:EWRONG\n", "unknown system call, group or error"},
        {"SystemCallErrorNumber=0\n", "kill, the name of an error"},
        {"SystemCallErrorNumber=4096\n", "kill, the name of an error"},
        {"SystemCallArchitectures=x86\n", "allowed: native"},
        {"CapabilityBoundingSet=CAP_ALL\n", "unknown capability"},
        {"RestrictAddressFamilies=inet\n", "unknown address family"},
        {"RestrictNamespaces=network\n", "unknown kind of namespaces"},
        {"UMask=0999\n", "not an octal number"},
        {"UMask=1777\n", "out of range"},
        {"ProtectSystem=tmpfs\n", "allowed: no, yes, full, strict"},
        {"ProtectHome=full\n", "allowed: no, yes, read-only, tmpfs"},
        {"ReadOnlyPaths=/usr etc\n", "not an absolute path"},
        {"ReadOnlyPaths=--/usr\n", "not an absolute path"},
        {"ReadWritePaths=+/usr\n", "not an absolute path"},
        {"InaccessiblePaths=-/usr/../etc\n", "a path with . or .."},
        {"InaccessiblePaths=/.\n", "a path with . or .."},
    };
    char text[256];

    for (size_t i = 0; i < ELEMENTS(mistakes); i++) {
        (void)snprintf(text, sizeof(text), "[Sandbox]\n%s", mistakes[i][0]);
        write_group("a", text);
        const char *problems = load_problems();

        ck_assert_msg(strstr(problems, mistakes[i][1]), "%s%s", mistakes[i][0], problems);
    }
}

TEST(equal_filters_are_compiled_once)
{
    static const char keys[] = "SystemCallFilter=@sync\nRestrictNamespaces=yes\n";
    struct config_group *former = load_sandbox(keys), *group = load_sandbox(keys),
                        *other = load_sandbox("SystemCallFilter=@mount\nRestrictNamespaces=yes\n");
    struct names names = NAMES_NULL;

    ck_assert_int_eq(sandbox_want(former, &names), 0);
    ck_assert_uint_eq(names.n_names, 0);
    ck_assert_ptr_eq(former->sandbox->filter.code, group->sandbox->filter.code);
    ck_assert_ptr_ne(other->sandbox->filter.code, group->sandbox->filter.code);
    former->sandbox = sandbox_free(former->sandbox);
    ck_assert_int_eq(sandbox_want(group, &names), 0);
    ck_assert_uint_eq(names.n_names, 0);
    group->sandbox = sandbox_free(group->sandbox);
    ck_assert_int_eq(sandbox_want(group, &names), 0);
    ck_assert_uint_eq(names.n_names, 1);
    names_deinit(&names);
}

TEST(filters_fit_into_the_message_that_starts_a_process)
{
    struct config_group *group =
        load_sandbox("SystemCallFilter=@system-service @mount @debug @privileged\n"
                     "RestrictAddressFamilies=AF_UNIX AF_XDP\nRestrictNamespaces=yes\n"
                     "MemoryDenyWriteExecute=yes\n");

    ck_assert_uint_gt(group->sandbox->filter.size, 0);
    ck_assert_uint_lt(group->sandbox->filter.size, 2048 * sizeof(struct sock_filter));
}

const struct suite suite = {.setup = config_test_enter, .teardown = config_test_leave};

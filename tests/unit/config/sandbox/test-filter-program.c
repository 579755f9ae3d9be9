/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/call-set.h"
#include "supervisor/config/sandbox/filter.h"
#include "tests/unit/suite.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>

#define ALLOW    SECCOMP_RET_ALLOW
#define ERROR(n) (SECCOMP_RET_ERRNO | (n))
#define KILL     SECCOMP_RET_KILL_PROCESS

static struct sandbox_filter filter;

static void set_up(void)
{
    filter = (struct sandbox_filter){0};
}

static void tear_down(void)
{
    free(filter.code);
}

static unsigned jump(const struct sock_filter *code, unsigned value)
{
    const bool yes = code->code == (BPF_JMP | BPF_JGE | BPF_K)   ? value >= code->k
                     : code->code == (BPF_JMP | BPF_JGT | BPF_K) ? value > code->k
                                                                 : value == code->k;

    return yes ? code->jt : code->jf;
}

/* As the kernel does, with what it refuses. */
static unsigned answer_to_data(struct seccomp_data data)
{
    const struct sock_filter *code = filter.code;
    unsigned value = 0;

    for (size_t at = 0;; at++) {
        ck_assert_uint_lt(at, filter.size / sizeof(*code));
        if (code[at].code == (BPF_RET | BPF_K))
            return code[at].k;
        if (code[at].code == (BPF_LD | BPF_W | BPF_ABS))
            memcpy(&value, (const char *)&data + code[at].k, sizeof(value));
        else if (code[at].code == (BPF_ALU | BPF_AND | BPF_K))
            value &= code[at].k;
        else if (code[at].code == (BPF_JMP | BPF_JA))
            at += code[at].k;
        else
            at += jump(&code[at], value);
    }
}

static unsigned answer(unsigned call, unsigned architecture)
{
    return answer_to_data((struct seccomp_data){.nr = (int)call, .arch = architecture});
}

static unsigned answer_with(const char *name, unsigned argument, uint64_t value)
{
    struct seccomp_data data = {.nr = seccomp_syscall_resolve_name(name),
                                .arch = seccomp_arch_native()};

    data.args[argument] = value;
    return answer_to_data(data);
}

static void check(const uint32_t *actions)
{
    ck_assert_int_eq(filter_program(actions, &filter), 0);
    ck_assert_uint_le(filter.size, SANDBOX_FILTER_SIZE_MAX);
    for (unsigned call = 0; call < SYSCALLS_MAX; call++)
        ck_assert_uint_eq(answer(call, seccomp_arch_native()), actions[call]);
    ck_assert_uint_eq(answer(SYSCALLS_MAX, seccomp_arch_native()), actions[SYSCALLS_MAX - 1]);
    ck_assert_uint_eq(answer(UINT32_MAX, seccomp_arch_native()), actions[SYSCALLS_MAX - 1]);
    ck_assert_uint_eq(answer(0, seccomp_arch_native() ^ 1), KILL);
}

TEST(all_calls_alike_take_no_test)
{
    uint32_t actions[SYSCALLS_MAX];

    for (size_t i = 0; i < SYSCALLS_MAX; i++)
        actions[i] = ALLOW;
    check(actions);
    ck_assert_uint_le(filter.size / sizeof(struct sock_filter), 8);
}

TEST(each_call_gets_its_own_answer)
{
    uint32_t actions[SYSCALLS_MAX];

    for (unsigned i = 0; i < SYSCALLS_MAX; i++)
        actions[i] = i % 7 == 3 ? ERROR(i % 5 + 1) : i > 300 && i < 340 ? KILL : ALLOW;
    check(actions);
}

TEST(a_program_with_a_run_for_each_call_is_right)
{
    uint32_t actions[SYSCALLS_MAX];

    for (unsigned i = 0; i < SYSCALLS_MAX; i++)
        actions[i] = ERROR(i + 1);
    check(actions);
}

#ifdef __x86_64__
TEST(calls_of_x32_kill)
{
    uint32_t actions[SYSCALLS_MAX] = {0};

    ck_assert_int_eq(filter_program(actions, &filter), 0);
    ck_assert_uint_eq(answer(0x40000000, seccomp_arch_native()), KILL);
    ck_assert_uint_eq(answer(0x40000001, seccomp_arch_native()), KILL);
    ck_assert_uint_eq(answer(UINT32_MAX - 1, seccomp_arch_native()), KILL);
}
#endif

static unsigned answer_to(const char *name)
{
    return answer((unsigned)seccomp_syscall_resolve_name(name), seccomp_arch_native());
}

TEST(settings_of_calls_make_such_a_program)
{
    ck_assert_int_eq(filter_compile("calls 1 @system-service ~@mount bpf:22 | ptrace", &filter), 0);
    ck_assert_uint_eq(answer_to("read"), ALLOW);
    ck_assert_uint_eq(answer_to("mount"), ERROR(EPERM));
    ck_assert_uint_eq(answer_to("reboot"), ERROR(EPERM));
    ck_assert_uint_eq(answer_to("bpf"), ERROR(EINVAL));
    ck_assert_uint_eq(answer_to("ptrace"), SECCOMP_RET_LOG);
    ck_assert_uint_eq(answer(SYSCALLS_MAX - 1, seccomp_arch_native()), ERROR(EPERM));
}

TEST(what_a_list_does_not_forbid_is_allowed)
{
    ck_assert_int_eq(filter_compile("calls 0 ~ptrace ~@mount", &filter), 0);
    ck_assert_uint_eq(answer_to("ptrace"), KILL);
    ck_assert_uint_eq(answer_to("mount"), KILL);
    ck_assert_uint_eq(answer_to("read"), ALLOW);
    ck_assert_uint_eq(answer(SYSCALLS_MAX, seccomp_arch_native()), ALLOW);
}

static unsigned answer_to_socket(uint64_t family)
{
    return answer_with("socket", 0, family);
}

TEST(what_a_list_allows_or_logs_is_still_restricted_by_its_arguments)
{
    static const char families[] = "arguments 0 0 2 ffffffffffffffff "; /* AF_UNIX */
    static const char *const lists[] = {"", "calls 1 read socket",
                                        "calls 1 @system-service | socket"};

    for (size_t i = 0; i < 3; i++) {
        char settings[128];

        (void)snprintf(settings, sizeof(settings), "%s%s", families, lists[i]);
        ck_assert_int_eq(filter_compile(settings, &filter), 0);
        ck_assert_uint_eq(answer_to_socket(AF_UNIX), i == 2 ? SECCOMP_RET_LOG : ALLOW);
        ck_assert_uint_eq(answer_to_socket(AF_INET), ERROR(EAFNOSUPPORT));
        ck_assert_uint_eq(answer_to("read"), ALLOW);
        ck_assert_uint_eq(answer_to("mount"), i == 0 ? ALLOW : ERROR(EPERM));
        ck_assert_uint_eq(answer(0, seccomp_arch_native() ^ 1), KILL);
        free(filter.code);
        filter = (struct sandbox_filter){0};
    }
    ck_assert_int_eq(filter_compile("", &filter), -EINVAL);
    ck_assert_int_eq(filter_compile(families + 1, &filter), -EINVAL);
}

TEST(a_call_that_every_list_allows_can_be_taken_out)
{
    ck_assert_int_eq(filter_compile("calls 1 read", &filter), 0);
    ck_assert_uint_eq(answer_to("futex_waitv"), ALLOW);
    free(filter.code);
    ck_assert_int_eq(filter_compile("calls 1 read ~futex_waitv", &filter), 0);
    ck_assert_uint_eq(answer_to("futex_waitv"), ERROR(EPERM));
    ck_assert_uint_eq(answer_to("futex"), ALLOW);
}

TEST(pages_of_files_stay_where_they_are_under_a_strict_profile)
{
    ck_assert_int_eq(filter_compile("arguments 0 1 ffffffffffffffff ffffffffffffffff ", &filter),
                     0);
    ck_assert_uint_eq(answer_with("fallocate", 1, FALLOC_FL_KEEP_SIZE), ALLOW);
    ck_assert_uint_eq(answer_with("fallocate", 1, FALLOC_FL_PUNCH_HOLE), ERROR(EOPNOTSUPP));
    ck_assert_uint_eq(answer_with("fallocate", 1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE),
                      ERROR(EOPNOTSUPP));
    for (uint64_t advice = 0; advice < 128; advice++) {
        const bool forbidden = advice == MADV_REMOVE || advice == 25; /* MADV_COLLAPSE */

        ck_assert_uint_eq(answer_with("madvise", 2, advice), forbidden ? ERROR(EINVAL) : ALLOW);
        ck_assert_uint_eq(answer_with("process_madvise", 3, advice),
                          forbidden ? ERROR(EINVAL) : ALLOW);
    }
    /* The kernel ignores the upper half. */
    ck_assert_uint_eq(answer_with("madvise", 2, UINT64_C(1) << 32 | MADV_REMOVE), ERROR(EINVAL));
}

const struct suite suite = {.setup = set_up, .teardown = tear_down};

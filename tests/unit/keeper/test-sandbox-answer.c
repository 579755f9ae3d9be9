/* SPDX-License-Identifier: MIT */
#include "supervisor/config/sandbox/filter.h"
#include "supervisor/keeper/sandbox-answer.h"
#include "tests/unit/suite.h"
#include <linux/filter.h>
#include <sys/syscall.h>

#define IPC                                                                                        \
    "~shmget ~shmat ~shmctl ~shmdt ~semget ~semctl ~semop ~semtimedop ~msgget ~msgctl ~msgsnd "    \
    "~msgrcv ~mq_open ~mq_unlink ~mq_notify ~mq_timedsend ~mq_timedreceive ~mq_getsetattr"

static struct sandbox sandbox;

static void set_up(void)
{
    sandbox = (struct sandbox){0};
}

static void tear_down(void)
{
    for (size_t i = 0; i < sandbox.n_filters; i++)
        free(sandbox.filters[i].code);
}

static void add(const char *settings)
{
    ck_assert_int_eq(filter_compile(settings, &sandbox.filters[sandbox.n_filters++]), 0);
}

START_TEST(without_filters_nothing_is_forbidden)
{
    ck_assert(!answer_forbids_ipc(&sandbox));
}
END_TEST

START_TEST(a_list_that_has_no_call_of_ipc_forbids_it)
{
    add("calls 1 read write");
    ck_assert(answer_forbids_ipc(&sandbox) == (ANSWER_NATIVE != 0));
}
END_TEST

START_TEST(so_does_a_list_that_forbids_all_of_them)
{
    add("calls 0 " IPC);
    ck_assert(answer_forbids_ipc(&sandbox) == (ANSWER_NATIVE != 0));
}
END_TEST

START_TEST(two_filters_together_forbid_it)
{
    add("arguments 1 0 0");
    add("calls 1 @system-service " IPC);
    ck_assert(answer_forbids_ipc(&sandbox) == (ANSWER_NATIVE != 0));
}
END_TEST

START_TEST(one_call_that_is_allowed_is_enough)
{
    add("calls 1 @system-service " IPC " shmctl");
    ck_assert(!answer_forbids_ipc(&sandbox));
}
END_TEST

START_TEST(so_is_one_that_is_recorded)
{
    add("calls 1 " IPC " | semget");
    ck_assert(!answer_forbids_ipc(&sandbox));
}
END_TEST

/* shmat() with SHM_EXEC. */
START_TEST(a_call_that_is_forbidden_with_some_arguments_counts_as_allowed)
{
    add("arguments 1 0 0");
    add("calls 1 @system-service " IPC " shmat");
    ck_assert(!answer_forbids_ipc(&sandbox));
}
END_TEST

START_TEST(calls_of_another_architecture_count)
{
    struct sock_filter all[] = {
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_filter native[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ANSWER_NATIVE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sandbox other = {.n_filters = 1, .filters = {{all, sizeof(all)}}};

    ck_assert(answer_forbids_ipc(&other) == (ANSWER_NATIVE != 0));
    other.filters[0] = (struct sandbox_filter){native, sizeof(native)};
    ck_assert(!answer_forbids_ipc(&other));
}
END_TEST

START_TEST(an_answer_is_that_of_the_arguments)
{
    struct seccomp_data call = {.nr = SYS_socket, .arch = ANSWER_NATIVE, .args = {AF_UNIX}};

    if (ANSWER_NATIVE == 0)
        return;
    add("arguments 0 2 ffffffffffffffff"); /* AF_UNIX */
    ck_assert_uint_eq(answer_of(&sandbox.filters[0], &call, 1), SECCOMP_RET_ALLOW);
    call.args[0] = AF_INET;
    ck_assert_uint_eq(answer_of(&sandbox.filters[0], &call, 1), SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}
END_TEST

START_TEST(a_program_of_other_instructions_or_without_an_end_leaves_one_unsure)
{
    struct sock_filter add_one[] = {BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1),
                                    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_filter far[] = {BPF_STMT(BPF_JMP | BPF_JA, 1000)};
    struct sock_filter behind[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(struct seccomp_data)),
                                   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct seccomp_data call = {0};

    ck_assert_uint_eq(answer_of(&(struct sandbox_filter){add_one, sizeof(add_one)}, &call, 7), 7);
    ck_assert_uint_eq(answer_of(&(struct sandbox_filter){far, sizeof(far)}, &call, 7), 7);
    ck_assert_uint_eq(answer_of(&(struct sandbox_filter){behind, sizeof(behind)}, &call, 7), 7);
    ck_assert_uint_eq(answer_of(&(struct sandbox_filter){far, 0}, &call, 7), 7);
}
END_TEST

START_TEST(a_jump_leads_over_as_many_instructions)
{
    struct sock_filter code[] = {BPF_STMT(BPF_JMP | BPF_JA, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_LOG)};
    const struct seccomp_data call = {0};

    ck_assert_uint_eq(answer_of(&(struct sandbox_filter){code, sizeof(code)}, &call, 7),
                      SECCOMP_RET_LOG);
}
END_TEST

const struct suite suite = {.name = "sandbox-answer", .setup = set_up, .teardown = tear_down};

/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/sandbox-answer.h"

#include "shared/base/cleanup.h"
#include <linux/filter.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

/* One that no machine has. */
#define FOREIGN (ANSWER_NATIVE ^ 1u)

static bool holds(const struct sock_filter *code, unsigned value)
{
    switch (BPF_OP(code->code)) {
    case BPF_JEQ:
        return value == code->k;
    case BPF_JGE:
        return value >= code->k;
    default:
        return value > code->k;
    }
}

/* Only jumps forward, as the kernel wants it; past the end, nothing is sure. */
static unsigned run(const struct sandbox_filter *filter, const void *call, size_t size,
                    unsigned unsure)
{
    const size_t n = filter->size / sizeof(struct sock_filter);
    struct sock_filter code;
    unsigned value = 0;
    for (size_t at = 0; at < n; at++) {
        memcpy(&code, (const char *)filter->code + at * sizeof(code), sizeof(code));
        switch (code.code) {
        case BPF_RET | BPF_K:
            return code.k;
        case BPF_LD | BPF_W | BPF_ABS:
            if (code.k > size - sizeof(value))
                return unsure;
            memcpy(&value, (const char *)call + code.k, sizeof(value));
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            value &= code.k;
            break;
        case BPF_JMP | BPF_JA:
            at += code.k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
        case BPF_JMP | BPF_JGE | BPF_K:
        case BPF_JMP | BPF_JGT | BPF_K:
            at += holds(&code, value) ? code.jt : code.jf;
            break;
        default:
            return unsure;
        }
    }
    return unsure;
}

unsigned answer_of(const struct sandbox_filter *filter, const struct seccomp_data *call,
                   unsigned unsure)
{
    return run(filter, call, sizeof(*call), unsure);
}

/* Whatever its arguments. */
static bool forbids(const struct sandbox_filter *filter, int number, unsigned architecture)
{
    const struct seccomp_data call = {.nr = number, .arch = architecture};
    const unsigned answer =
        run(filter, &call, offsetof(struct seccomp_data, instruction_pointer), SECCOMP_RET_ALLOW) &
        SECCOMP_RET_ACTION_FULL;
    return answer == SECCOMP_RET_ERRNO || answer == SECCOMP_RET_KILL_PROCESS;
}

static bool one_forbids(const struct sandbox *sandbox, int number, unsigned architecture)
{
    for (size_t i = 0; i < sandbox->n_filters; i++)
        if (forbids(&sandbox->filters[i], number, architecture))
            return true;
    return false;
}

bool answer_forbids_ipc(const struct sandbox *sandbox)
{
#if defined(__x86_64__) || defined(__aarch64__)
    static const int calls[] = {
        SYS_shmget,       SYS_shmat,           SYS_shmctl,        SYS_shmdt,     SYS_semget,
        SYS_semctl,       SYS_semop,           SYS_semtimedop,    SYS_msgget,    SYS_msgctl,
        SYS_msgsnd,       SYS_msgrcv,          SYS_mq_open,       SYS_mq_unlink, SYS_mq_notify,
        SYS_mq_timedsend, SYS_mq_timedreceive, SYS_mq_getsetattr,
    };
    bool all = one_forbids(sandbox, 0, FOREIGN) && one_forbids(sandbox, SYS_shmget, FOREIGN);
    for (size_t i = 0; all && i < ELEMENTS(calls); i++)
        all = one_forbids(sandbox, calls[i], ANSWER_NATIVE);
#ifdef __x86_64__
    for (size_t i = 0; all && i < ELEMENTS(calls); i++)
        all = one_forbids(sandbox, calls[i] | (int)SANDBOX_X32_CALLS, ANSWER_NATIVE);
#endif
    return all;
#else
    (void)sandbox;
    return false;
#endif
}

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the filters of a sandbox say to a system call, before the kernel has them. Exact for the
 * instructions that the supervisor's programs are made of.
 */

#include "supervisor/keeper/sandbox.h"
#include <linux/audit.h>
#include <linux/seccomp.h>

/* As programs know the architecture; 0 = they are not asked. */
#if defined(__x86_64__)
#define ANSWER_NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ANSWER_NATIVE AUDIT_ARCH_AARCH64
#else
#define ANSWER_NATIVE 0u
#endif

/* Returns SECCOMP_RET_*; `unsure` if the program has other instructions. */
unsigned answer_of(const struct sandbox_filter *filter, const struct seccomp_data *call,
                   unsigned unsure);

/* Whether a call of System V IPC or of message queues can never do anything: the filters let none
 * through, whatever its arguments, nor one of another architecture. */
bool answer_forbids_ipc(const struct sandbox *sandbox);

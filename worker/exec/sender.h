/* SPDX-License-Identifier: MIT */
#pragma once

/* The sender of a signal to this process. The kernel reveals it only to a process that handles the
 * signal, so the senders of SIGKILL and of a command's signals are unknown. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/types.h>

struct sender {
    pid_t pid;      /* 0 = the kernel, or a process of another PID namespace */
    pid_t parent;   /* of the sender; 0 = unknown */
    uid_t uid;      /* valid if `pid` */
    bool by_kernel; /* such as for an interrupt key */
    char name[17];  /* of the program, at most 15 characters; "" = unknown: it may have ended */
};

/* clang-format off */
#define SENDER_NULL {.pid = 0}
/* clang-format on */

/* Looks up the sender, if it still exists. */
void sender_look_up(struct sender *ret, const struct signalfd_siginfo *info);

/* Returns whether it is the process that started this one or a child of it: the supervisor. */
bool sender_is_supervisor(const struct sender *sender);

/* Suffices for every description. */
#define SENDER_TEXT 80

/* Writes "sent by process 7 (bash) of uid 0", cut to `size`. Returns `text`. */
char *sender_describe(const struct sender *sender, char *text, size_t size);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Kills processes that make a system call which the filters of their worker forbid, and tells which
 * call it was. The kernel itself would only say SIGSYS. It lets the call wait, and never makes it.
 *
 * As the kernel would, it kills the process that made the call, not the rest of the worker, with
 * SIGSYS, or with SIGKILL if SIGSYS might not end it. A worker whose processes make many forbidden
 * calls is killed as a whole.
 */

#include "shared/base/clock.h"
#include "supervisor/loop/loop.h"
#include <stdbool.h>
#include <sys/types.h>

struct seccomp_data;
struct seccomp_notif;

/* Long enough for every call. */
#define CALL_TEXT_MAX 224

/* A forbidden call. */
struct forbidden_call {
    pid_t pid;                /* of the process; 0 = none yet */
    pid_t inner;              /* the same, in its own PID namespace */
    char text[CALL_TEXT_MAX]; /* "system call ptrace(16, …) is not allowed (SystemCallFilter=)" */
};

struct call_listener {
    struct loop *loop;
    int fd; /* of seccomp_unotify(2); -1 = none */
    struct loop_watch watch;
    struct rate rate;
    /* The call that was received and not answered yet, in memory that outlives the supervisor: else
     * its caller would wait forever after a crash. `id` 0 = none. NULL = not kept. */
    struct seccomp_notif *received;
    /* Whether to make the call after all: it is not the program's. */
    bool (*permits)(struct call_listener *listener, const struct seccomp_data *data);
    /* `all`: there are too many, so all processes of the worker are to be killed. */
    void (*forbidden)(struct call_listener *listener, const struct forbidden_call *call, bool all);
};

/* clang-format off */
#define CALL_LISTENER_NULL {.fd = -1}
/* clang-format on */

/* Takes over the descriptor, also on error. The callbacks and `received` are set. Returns 0 or
 * -errno. */
int call_listener_init(struct call_listener *listener, struct loop *loop, int fd);
/* Handles the call that the last supervisor had received and not answered, if there is one. */
void call_listener_resume(struct call_listener *listener);
/* Lets calls wait, or handles them again. Harmless without a descriptor. */
void call_listener_pause(struct call_listener *listener, bool paused);
/* Idempotent. Forbidden calls fail with ENOSYS from now on. */
void call_listener_deinit(struct call_listener *listener);

/* Describes a call, with all six registers: a call has at most that many arguments. */
void call_describe(const struct seccomp_data *data, char text[CALL_TEXT_MAX]);

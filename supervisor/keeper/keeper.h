/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The keeper: trouped's main process, and the parent of all others. It starts the supervisor,
 * starts and reaps workers on request, and relays signals and sd_notify(3) texts. It reads no
 * untrusted data, allocates nothing after its start, has no threads, and blocks only in poll(2).
 *
 *   keeper            main process; subreaper
 *   ├─ supervisor     the event loop
 *   ├─ worker         started at the supervisor's request
 *   └─ …
 *
 * When the keeper dies, the kernel kills all workers (parent-death signal); the supervisor kills
 * their descendants, and ends. When the supervisor crashes, the keeper starts another one,
 * and hands over to it what the crashed one had held (message.h); it kills the other workers.
 * Orphans become the keeper's children. After the end of a worker without a cgroup, the keeper
 * kills those outside the session of a living worker; before its own end, it kills all.
 */

#include <limits.h>
#include <signal.h>
#include <stdbool.h>

/*
 * Environment variable for the supervisor: "CHANNEL NOTIFY VERSION PROGRAM", with the descriptor
 * numbers of struct keeper_ends, MESSAGE_VERSION, and the path of the program that an upgrade
 * executes.
 */
#define KEEPER_VARIABLE "TROUPE_KEEPER"

/* The supervisor's parent-death signal. It ends a supervisor that does not handle it. */
#define KEEPER_DEATH_SIGNAL SIGALRM

/* With this exit status a supervisor asks for its successor: the program that is installed now. */
#define KEEPER_EXIT_UPGRADE 75

/* The supervisor's descriptors, which it owns. Both are close-on-exec. */
struct keeper_ends {
    int channel;   /* see message.h */
    int notify_fd; /* takes sd_notify(3) texts; -errno of relay_open() */
};

#define PROGRAM_NAME "trouped-supervisor"

/*
 * The supervisor's program, trouped-supervisor: beside this one (a build tree) or installed. It is
 * kept open, so that a supervisor that crashes is started again from the same file, even if another
 * version has been installed since; an upgrade opens it again. Without privileges, each
 * supervisor executes a copy in memory that its user cannot read, so that no worker can trace it.
 */
struct program {
    /* Executes `next_fd` if there is one, or else `fd`, in the supervisor process. Returns an exit
     * status on failure. */
    int (*run)(const struct program *program, const struct keeper_ends *ends);
    char path[PATH_MAX];
    char **argv; /* passed to it, and borrowed */
    int fd;
    int next_fd; /* the new one, during an upgrade, else -1 */
};

/* Returns a descriptor for struct program, or -errno, logged. */
int program_open(const char *path);

/* program.run of trouped: executes the file (supervisor-child.c). */
int program_run(const struct program *program, const struct keeper_ends *ends);

/*
 * Runs the keeper until all other processes have ended. Returns the supervisor's exit status, or
 * EXIT_FAILURE (logged) if it was killed or could not be started. Does not return in the supervisor
 * process. Call it once, with one thread.
 */
int keeper_run(struct program *program);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The keeper: trouped's main process, and the parent of all others. It starts the supervisor,
 * starts and reaps workers on request, and relays signals and sd_notify(3) texts. It reads no
 * untrusted data, allocates nothing after its start, and blocks only in poll(2).
 *
 *   keeper            main process; subreaper
 *   ├─ supervisor     the event loop
 *   ├─ worker         started at the supervisor's request
 *   └─ …
 *
 * When the keeper dies, the kernel kills the supervisor and all workers (parent-death signal). When
 * the supervisor dies, the keeper kills the workers. Orphans become the keeper's children. After
 * the end of a worker without a cgroup, the keeper kills those outside the process group of a
 * living worker; before its own end, it kills all.
 */

/* Environment variable with the descriptor numbers of struct keeper_ends: "CHANNEL NOTIFY". */
#define KEEPER_VARIABLE "TROUPE_KEEPER"

/* The supervisor's descriptors, which it owns. Both are close-on-exec. */
struct keeper_ends {
    int channel;   /* see message.h */
    int notify_fd; /* takes sd_notify(3) texts; -errno of relay_open() */
};

/*
 * Executes the supervisor's program, in the supervisor process. Returns an exit status on failure.
 */
typedef int (*keeper_supervisor_fn)(void *userdata, const struct keeper_ends *ends);

/*
 * Runs the keeper until all other processes have ended. Returns the supervisor's exit status, or
 * EXIT_FAILURE (logged) if it was killed or could not be started. Does not return in the supervisor
 * process. Call it once, with one thread.
 */
int keeper_run(keeper_supervisor_fn supervisor, void *userdata);

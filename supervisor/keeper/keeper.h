/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The keeper: trouped's main process, and the parent of everything else. It starts the supervisor,
 * starts and reaps workers for it, and passes signals and readiness texts on. It reads nothing that
 * a stranger has written, allocates nothing after its start, and waits for nothing but its own
 * poll(2).
 *
 *   keeper            main process; subreaper
 *   ├─ supervisor     the event loop
 *   ├─ worker         started at the supervisor's request
 *   └─ …
 *
 * When the keeper dies, the kernel ends the supervisor and all workers (parent-death signal). When
 * the supervisor dies, the keeper ends the workers. Descendants that lose their parent become the
 * keeper's children, and it ends them: after the end of any worker without a cgroup those that are
 * not in the process group of a living worker, and before its own end all of them.
 */

/* Tells the supervisor's program the numbers of struct keeper_ends: "CHANNEL NOTIFY". */
#define KEEPER_VARIABLE "TROUPE_KEEPER"

/* What the supervisor gets from the keeper. Both close-on-exec, the supervisor's. */
struct keeper_ends {
    int channel;   /* see message.h */
    int notify_fd; /* datagrams for the service manager; -errno of relay_open() */
};

/* Runs as the supervisor process, and executes the supervisor's program there. Returns an exit
 * status. */
typedef int (*keeper_supervisor_fn)(void *userdata, const struct keeper_ends *ends);

/*
 * Becomes the keeper, and returns when the supervisor and everything else has ended: the
 * supervisor's exit status, or EXIT_FAILURE, logged, when it was killed or could not be started. In
 * the supervisor process it does not return. To be called once, with one thread.
 */
int keeper_run(keeper_supervisor_fn supervisor, void *userdata);

/* SPDX-License-Identifier: MIT */
#include "supervisor/keeper/keeper.h"
#include "shared/base/cleanup.h"
#include "shared/base/log.h"
#include "supervisor/keeper/keeper-private.h"
#include "supervisor/keeper/spawn.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Bounds the requests per turn, so that signals and deaths are handled in between. */
#define REQUESTS_PER_TURN 16
/* Bounds the deaths per turn: any worker can leave thousands of orphans that end. */
#define DEATHS_PER_TURN 64
/* The pause before a reply is sent again when the kernel had no memory for it. */
#define REPLY_RETRY_MS 10

struct keeper keeper;

/* ---- signals ---- */

/* Passes the sender's pid on: the supervisor logs who sent the signal. Between two supervisors,
 * SIGTERM and SIGINT are the end, unless the next one has what the last one saved, and SIGHUP needs
 * no reload: the next one starts immediately. */
static void forward(const struct signalfd_siginfo *info)
{
    const bool known = info->ssi_code == SI_USER || info->ssi_code == SI_QUEUE;
    const union sigval sender = {.sival_int = known ? (int)info->ssi_pid : 0};
    const bool stop = info->ssi_signo != SIGHUP;
    if (stop) {
        keeper.stopping = true;
        keeper.stopper = sender.sival_int;
    }
    if (keeper.supervisor > 0)
        (void)sigqueue(keeper.supervisor, (int)info->ssi_signo, sender);
    else if (stop && !keeper.upgrading) {
        keeper.status = keeper.ending ? keeper.status : EXIT_SUCCESS;
        keeper_end_all();
    } else if (!keeper.ending)
        keeper.due_at = clock_now();
}

/* The service manager's watchdog requests a core dump with SIGABRT. The process that hangs, and
 * may be stopped, is the supervisor. */
static void abort_supervisor(int signo)
{
    keeper.stopping = true;
    if (keeper.supervisor == 0) {
        keeper_end_all();
        return;
    }
    (void)kill(keeper.supervisor, signo);
    (void)kill(keeper.supervisor, SIGCONT);
}

/* Signals beyond the buffer stay queued; the descriptor stays readable. */
static void take_signals(void)
{
    struct signalfd_siginfo infos[8];
    ssize_t size = read(keeper.signals, infos, sizeof(infos));
    size_t n = size > 0 ? (size_t)size / sizeof(infos[0]) : 0;
    for (size_t i = 0; i < n; i++) {
        switch (infos[i].ssi_signo) {
        case SIGCHLD:
            keeper.deaths_due = true;
            break;
        case SIGTERM:
        case SIGINT:
        case SIGHUP:
            forward(&infos[i]);
            break;
        case SIGABRT:
        case SIGQUIT:
            abort_supervisor((int)infos[i].ssi_signo);
            break;
        default: /* ignored */
            break;
        }
    }
}

/* ---- turns ---- */

static int timeout_ms(void)
{
    usec_t at = keeper.ending ? keeper.end_by : keeper_restart_due();
    const int retry = keeper.reply_later ? REPLY_RETRY_MS : relay_wait_ms(&keeper.relay);
    if (keeper.orphans_searched || (keeper.deaths_due && !keeper.reply_waits))
        return 0;
    if (keeper.orphans_at < at)
        at = keeper.orphans_at;
    if (at == USEC_INFINITY)
        return retry;
    usec_t left = usec_sub(at, clock_now()) / USEC_PER_MSEC + 1;
    return retry >= 0 && (usec_t)retry < left ? retry : (int)left;
}

static short channel_events(void)
{
    if (!keeper.reply_waits)
        return POLLIN;
    return keeper.reply_later ? 0 : POLLOUT;
}

static void wait_for_something(void)
{
    struct pollfd fds[] = {
        {.fd = keeper.signals, .events = POLLIN},
        {.fd = keeper.channel, .events = channel_events()},
        relay_wait(&keeper.relay),
    };
    (void)poll(fds, ELEMENTS(fds), timeout_ms());
    if (fds[0].revents != 0)
        take_signals();
    if (keeper.reply_waits)
        keeper_flush_reply();
    if (fds[2].revents != 0 || relay_wait_ms(&keeper.relay) >= 0)
        relay_run(&keeper.relay);
}

static void run_turn(void)
{
    wait_for_something();
    keeper_hand_over();
    for (int i = 0; i < DEATHS_PER_TURN && keeper.deaths_due && !keeper.reply_waits; i++)
        keeper.deaths_due = keeper_reap_one();
    keeper_restart_supervisor();
    for (int i = 0; i < REQUESTS_PER_TURN && keeper.channel >= 0 && !keeper.reply_waits; i++)
        if (!keeper_take_request())
            break;
    keeper_end_orphans();
}

/* Returns whether no child is left, or none that can be ended. */
static bool is_over(void)
{
    struct spawn_exit how;
    if (!keeper.ending)
        return false;
    if (spawn_find_ended(&how) == -ECHILD)
        return true;
    if (clock_now() < keeper.end_by)
        return false;
    log_warning("some killed processes do not end; leaving them behind");
    return true;
}

/* ---- start ---- */

/* Children from before trouped was executed, by a container's start script for example, are not
 * orphans of a worker. */
static void keep_earlier_child(pid_t pid)
{
    children_add(keeper.children, pid, 0, true);
}

/* New processes do not read the tables. Without copies of them clone takes a tenth less time, and
 * the keeper does not fault on them afterwards. */
static int map_tables(void)
{
    const size_t size = sizeof(*keeper.children) + sizeof(*keeper.holdings);
    void *tables = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (tables == MAP_FAILED)
        return supervisor_process_cannot_start("mmap");
#ifndef __SANITIZE_ADDRESS__ /* its search for leaks reads all memory in new processes */
    (void)madvise(tables, size, MADV_DONTFORK);
#endif
    keeper.holdings = tables;
    keeper.children = (void *)(keeper.holdings + 1);
    return 0;
}

static int become_keeper(void)
{
    sigset_t signals;
    int r;
    keeper.channel = keeper.reply_fd = keeper.children_fd = -1;
    keeper.orphans_at = USEC_INFINITY;
    /* Otherwise a worker of the same user could trace the keeper or write to its memory. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return supervisor_process_cannot_start("prctl");
    r = map_tables();
    if (r < 0)
        return r;
    /* Otherwise clients could take the descriptors that a new worker needs. */
    keeper.holdings->client_fds_max = supervisor_process_init(&signals) / 2;
    keeper.signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (keeper.signals < 0)
        return supervisor_process_cannot_start("signalfd");
    for (bool more = keeper_begin_children(); more;)
        more = keeper_next_children(keep_earlier_child);
    return keeper_start_supervisor();
}

int keeper_run(struct program *program)
{
    keeper.program = program;
    keeper.notify_fd = relay_open(&keeper.relay);
    if (become_keeper() < 0)
        return EXIT_FAILURE;
    while (!is_over())
        run_turn();
    relay_run(&keeper.relay);
    return keeper.status;
}

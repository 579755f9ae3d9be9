/* SPDX-License-Identifier: MIT */
/* From one supervisor to the next, and the end. */
#include "shared/base/cleanup.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "supervisor/keeper/keeper-private.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* At the end, or before the next supervisor: the wait for processes that SIGKILL does not end (a
 * hung file system). */
#define END_MSEC 5000
/* A new supervisor is ready once it serves its clients. */
#define UPGRADE_SEC 60
/* How often the keeper serves the service manager's watchdog while no supervisor does. */
#define ALIVE_SEC 1

int keeper_start_supervisor(void)
{
    const pid_t pid = supervisor_process_start(keeper.program, keeper.notify_fd, &keeper.channel);
    if (pid < 0)
        return (int)pid;
    keeper.due_at =
        keeper.upgrading ? usec_add(clock_now(), UPGRADE_SEC * USEC_PER_SEC) : USEC_INFINITY;
    keeper.supervisor = pid;
    keeper.handing_over = true;
    keeper.next_held = 0;
    keeper_hand_over();
    if (keeper.stopping)
        (void)sigqueue(pid, SIGTERM, (union sigval){.sival_int = keeper.stopper});
    return 0;
}

static void log_crash(const struct spawn_exit *how, const char *consequence)
{
    if (how->signalled)
        log_error("the supervisor was killed by signal %d (%s)%s; %s", how->code,
                  strsignal(how->code), how->core_dumped ? ", core dumped" : "", consequence);
    else
        log_error("the supervisor exited with status %d; %s", how->code, consequence);
}

void keeper_end_all(void)
{
    keeper.ending = true;
    keeper.due_at = USEC_INFINITY;
    keeper.end_by = usec_add(clock_now(), END_MSEC * USEC_PER_MSEC);
    keeper_expect_orphans();
}

/* Kills processes that only the dead supervisor knew. The descendants of a contained process also
 * become orphans: no supervisor empties its cgroup. */
static void end_unheld(struct child *child)
{
    if (child->spared) /* the supervisor that waited for its descendants has ended */
        keeper_spare(child, false);
    if (child->id == 0 || holdings_has(keeper.holdings, child->id))
        return;
    keeper.n_unheld += child->id != CHILD_UNKNOWN && !child->ended;
    child->id = CHILD_UNKNOWN;
    child->contained = false;
    (void)kill(child->pid, SIGKILL);
    (void)kill(-child->pid, SIGKILL);
}

static void let_go_of_unheld(void)
{
    FAULT_POINT("restart-planned");
    keeper.n_unheld = 0;
    keeper.unheld_by = usec_add(clock_now(), END_MSEC * USEC_PER_MSEC);
    for (int i = -1; (i = id_table_next(&keeper.children->pids, (uint32_t)i + 1)) >= 0;)
        end_unheld(&keeper.children->at[i]);
    memset(keeper.ends, 0, sizeof(keeper.ends)); /* the next supervisor may use their ids */
    keeper_expect_orphans();
}

static void plan_restart(const struct spawn_exit *how)
{
    const bool safe = keeper.crashes.safe_mode;
    keeper.due_at = crashes_add(&keeper.crashes, clock_now());
    log_crash(how, "it is started again, and workers keep running");
    if (keeper.crashes.safe_mode && !safe)
        log_error("the supervisor has crashed %d times within %d s: it starts in safe mode",
                  CRASHES_MAX, (int)(CRASHES_WITHIN / USEC_PER_SEC));
}

/* ---- upgrades ---- */

static void settle_upgrade(bool failed)
{
    struct program *program = keeper.program;
    keeper.upgrading = false;
    if (failed)
        keeper.n_failed_upgrades++;
    else {
        keeper.n_upgrades++;
        SWAP(program->fd, program->next_fd);
    }
    program->next_fd = close_fd(program->next_fd);
}

/* If there is no new program, the old one is started again. */
static void plan_upgrade(void)
{
    keeper.program->next_fd = program_open(keeper.program->path);
    keeper.upgrading = keeper.program->next_fd >= 0;
    if (!keeper.upgrading)
        keeper.n_failed_upgrades++;
}

static void undo_upgrade(const struct spawn_exit *how)
{
    log_crash(how, "the upgrade has failed, and the old program is started again");
    settle_upgrade(true);
}

void keeper_supervisor_ready(void)
{
    keeper.ready = true;
    if (!keeper.upgrading)
        return;
    settle_upgrade(false);
    keeper.due_at = USEC_INFINITY;
    crashes_forgive(&keeper.crashes);
    log_notice("the supervisor has been upgraded");
}

/* ---- the supervisor's end ---- */

/* Takes what the dead supervisor had sent: it may have held or released something at last. */
static void take_last_requests(void)
{
    keeper.supervisor = 0;
    keeper.handing_over = false;
    while (keeper.channel >= 0 && keeper_take_request())
        ;
    keeper.channel = close_fd(keeper.channel); /* a closed peer keeps poll() awake */
}

/* If a stop was requested during the upgrade, the next supervisor carries it out, or the old
 * program if the next one fails: both know the saved state. */
static bool hands_over(const struct spawn_exit *how)
{
    return !keeper.upgrading && !how->signalled && how->code == KEEPER_EXIT_UPGRADE;
}

void keeper_supervisor_ended(const struct spawn_exit *how)
{
    take_last_requests();
    let_go_of_unheld();
    keeper.due_at = clock_now();
    keeper.alive_at = 0;
    keeper.status = how->signalled ? EXIT_FAILURE : how->code;
    const bool asked = !how->signalled && how->code == EXIT_SUCCESS;
    if (keeper.ready && hands_over(how)) {
        plan_upgrade();
    } else if (keeper.ready && keeper.upgrading) {
        /* A new program is ready before it carries out a stop requested during the upgrade. */
        undo_upgrade(how);
    } else if (keeper.ready && !keeper.stopping && !asked) {
        plan_restart(how);
    } else {
        if (how->signalled)
            log_crash(how, "everything it ran is ended");
        keeper_end_all();
    }
}

/* ---- due ---- */

/* Between two supervisors, and while a new program takes over what was saved for it. */
static bool serves_watchdog(void)
{
    return keeper.upgrading || (keeper.supervisor == 0 && keeper.due_at != USEC_INFINITY);
}

/* When to start the next supervisor, or to give up one. Jobs of a process that was not held are not
 * to begin again before it has ended. */
static usec_t due_at(void)
{
    const bool waits = keeper.supervisor == 0 && keeper.n_unheld > 0;
    return waits && keeper.due_at < keeper.unheld_by ? keeper.unheld_by : keeper.due_at;
}

usec_t keeper_restart_due(void)
{
    return serves_watchdog() && keeper.alive_at < due_at() ? keeper.alive_at : due_at();
}

/* The pauses may exceed WatchdogSec=, after which the service manager would end all workers. */
static void stay_alive(void)
{
    const usec_t now = clock_now();
    if (!serves_watchdog() || now < keeper.alive_at)
        return;
    relay_tell(&keeper.relay, keeper.upgrading
                                  ? "WATCHDOG=1"
                                  : "WATCHDOG=1\nSTATUS=the supervisor has crashed and is started "
                                    "again, see the log; workers keep running");
    keeper.alive_at = usec_add(now, ALIVE_SEC * USEC_PER_SEC);
}

/* Takes what arrived in time first. */
static void give_up_upgrade(void)
{
    keeper_take_requests();
    if (!keeper.upgrading)
        return;
    log_error("the new supervisor is not ready after %d s", UPGRADE_SEC);
    keeper.due_at = USEC_INFINITY;
    (void)kill(keeper.supervisor, SIGKILL);
}

void keeper_restart_supervisor(void)
{
    stay_alive();
    if (clock_now() < due_at())
        return;
    if (keeper.supervisor > 0) {
        give_up_upgrade();
    } else if (keeper_start_supervisor() == 0) {
        FAULT_POINT("restart-started");
    } else {
        keeper.status = EXIT_FAILURE;
        keeper_end_all();
    }
}

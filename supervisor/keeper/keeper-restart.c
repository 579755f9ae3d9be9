/* SPDX-License-Identifier: MIT */
/* From one supervisor to the next, and the end. */
#include "shared/base/cleanup.h"
#include "shared/base/closer.h"
#include "shared/base/fault.h"
#include "shared/base/log.h"
#include "supervisor/keeper/keeper-private.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* At the end: the wait for processes that SIGKILL does not end (a hung file system). */
#define END_MSEC 5000
/* A socket that waits when it is closed is interrupted after 1 ms. */
#define SETTLE_MSEC 100
/* A new supervisor is ready once it serves its clients. */
#define UPGRADE_SEC 60
/* More than a turn of the keeper takes. */
#define LATE_SEC 1
/* How often the keeper serves the service manager's watchdog while no supervisor does. */
#define ALIVE_SEC 1

/* Runs in the supervisor's process. */
static void close_all(void)
{
    close_fd(keeper.signals);
    close_fd(keeper.relay.from);
    close_fd(keeper.relay.to);
    keeper_close_orphans();
    closer_forget();
}

static pid_t start(int *ret_channel)
{
    closer_settle(SETTLE_MSEC);
    return supervisor_process_start(&keeper.process, close_all, ret_channel);
}

static pid_t take_next(void)
{
    const pid_t pid = keeper.next;
    keeper.channel = TAKE_FD(keeper.next_channel);
    keeper.next = 0;
    return pid;
}

int keeper_start_supervisor(void)
{
    const pid_t pid = keeper.next > 0 ? take_next() : start(&keeper.channel);
    keeper.restart_at = USEC_INFINITY;
    if (pid < 0)
        return (int)pid;
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
    keeper.restart_at = USEC_INFINITY;
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
    child->id = CHILD_UNKNOWN;
    child->contained = false;
    (void)kill(child->pid, SIGKILL);
    (void)kill(-child->pid, SIGKILL);
}

static void let_go_of_unheld(void)
{
    FAULT_POINT("restart-planned");
    children_each(keeper.children, end_unheld);
    memset(keeper.ends, 0, sizeof(keeper.ends)); /* the next supervisor may use their ids */
    keeper_expect_orphans();
}

static void plan_restart(const struct spawn_exit *how)
{
    const bool safe = keeper.crashes.safe_mode;
    keeper.restart_at = crashes_add(&keeper.crashes, clock_now());
    keeper.alive_at = 0;
    log_crash(how, "it is started again, and workers keep running");
    if (keeper.crashes.safe_mode && !safe)
        log_error("the supervisor has crashed %d times within %d s: it starts in safe mode",
                  CRASHES_MAX, (int)(CRASHES_WITHIN / USEC_PER_SEC));
    let_go_of_unheld();
}

/* ---- upgrades ---- */

static void settle_upgrade(bool failed)
{
    keeper.upgrading = false;
    keeper.process.program->settle(keeper.process.program, failed);
    if (failed)
        keeper.n_failed_upgrades++;
    else
        keeper.n_upgrades++;
}

static bool renew(void)
{
    return keeper.process.program->renew(keeper.process.program) == 0;
}

/* Its copies of descriptors are gone once it executes the program. */
void keeper_start_next(void)
{
    keeper_drop_next(); /* of an upgrade that was given up */
    if (!renew())
        return;
    const pid_t pid = start(&keeper.next_channel);
    if (pid < 0)
        keeper.process.program->settle(keeper.process.program, true);
    else
        keeper.next = pid;
}

void keeper_drop_next(void)
{
    if (keeper.next == 0)
        return;
    (void)kill(keeper.next, SIGKILL);
    keeper.next_channel = close_fd(keeper.next_channel);
    keeper.next = 0;
    if (!keeper.upgrading)
        keeper.process.program->settle(keeper.process.program, true);
}

/* If there is no new program, the old one is started again. */
static void plan_upgrade(void)
{
    const usec_t now = clock_now();
    keeper.upgrading = keeper.next > 0 || renew();
    if (!keeper.upgrading)
        keeper.n_failed_upgrades++;
    keeper.ready_by = usec_add(now, UPGRADE_SEC * USEC_PER_SEC);
    keeper.restart_at = now;
    keeper.alive_at = keeper.upgrading ? 0 : USEC_INFINITY;
    let_go_of_unheld();
}

static void undo_upgrade(const struct spawn_exit *how)
{
    log_crash(how, "the upgrade has failed, and the old program is started again");
    settle_upgrade(true);
    keeper.restart_at = clock_now();
    let_go_of_unheld();
}

void keeper_supervisor_ready(void)
{
    keeper.ready = true;
    if (!keeper.upgrading)
        return;
    settle_upgrade(false);
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
    keeper.status = how->signalled ? EXIT_FAILURE : how->code;
    const bool asked = !how->signalled && how->code == EXIT_SUCCESS;
    if (keeper.ready && hands_over(how)) {
        plan_upgrade();
    } else if (keeper.ready && keeper.upgrading) {
        /* A new program is ready before it carries out a stop requested during the upgrade. */
        undo_upgrade(how);
    } else if (keeper.ready && !keeper.stopping && !asked) {
        plan_restart(how);
    }
    if (!keeper.upgrading)
        keeper_drop_next();
    if (keeper.restart_at != USEC_INFINITY)
        return;
    if (how->signalled)
        log_crash(how, "everything it ran is ended");
    keeper_end_all();
}

/* ---- due ---- */

static usec_t restart_due(void)
{
    return keeper.upgrading && keeper.supervisor > 0 ? keeper.ready_by : keeper.restart_at;
}

/* Between two supervisors, and while a new program takes over what was saved for it. */
static bool serves_watchdog(void)
{
    return keeper.upgrading || (keeper.supervisor == 0 && keeper.restart_at != USEC_INFINITY);
}

usec_t keeper_restart_due(void)
{
    const usec_t at = restart_due();
    return serves_watchdog() && keeper.alive_at < at ? keeper.alive_at : at;
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

/* Takes what arrived in time first. If this process did not run when the time was over, the
 * supervisor was probably also stopped. */
static bool is_too_late(void)
{
    const usec_t now = clock_now();
    while (keeper.upgrading && !keeper.reply_waits && keeper.channel >= 0 && keeper_take_request())
        ;
    if (!keeper.upgrading)
        return false;
    if (usec_sub(now, keeper.ready_by) < LATE_SEC * USEC_PER_SEC)
        return true;
    keeper.ready_by = usec_add(now, UPGRADE_SEC * USEC_PER_SEC);
    return false;
}

static void give_up_upgrade(void)
{
    log_error("the new supervisor is not ready after %d s", UPGRADE_SEC);
    keeper.ready_by = USEC_INFINITY;
    (void)kill(keeper.supervisor, SIGKILL);
}

void keeper_restart_supervisor(void)
{
    stay_alive();
    if (clock_now() < restart_due())
        return;
    if (keeper.supervisor > 0) {
        if (is_too_late())
            give_up_upgrade();
    } else if (keeper_start_supervisor() == 0) {
        FAULT_POINT("restart-started");
    } else {
        keeper.status = EXIT_FAILURE;
        keeper_end_all();
    }
}

/* SPDX-License-Identifier: MIT */
/* Children and orphans that end, or have to. */
#include "shared/base/cleanup.h"
#include "shared/base/clock.h"
#include "shared/base/log.h"
#include "supervisor/keeper/keeper-private.h"
#include "supervisor/keeper/spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* The delay from a death to the search for orphans: one search serves many deaths, and restarts
 * come first. */
#define ORPHANS_MSEC 2

void keeper_expect_orphans(void)
{
    if (keeper.orphans_at == USEC_INFINITY)
        keeper.orphans_at = usec_add(clock_now(), ORPHANS_MSEC * USEC_PER_MSEC);
}

/* A contained worker's descendants end with its cgroup or PID namespace, except at the keeper's own
 * end, when no cgroup is emptied. An inherited process matters only if the keeper killed it as an
 * orphan. */
static bool leaves_orphans(const struct child *child)
{
    if (keeper.ending)
        return true;
    return child ? !child->contained && !child->spared : keeper.orphans_left;
}

/* Keeps how the process ended for the next supervisor. */
static void keep_end(uint64_t id, const struct spawn_exit *how)
{
    if (holdings_has(keeper.holdings, id))
        holdings_end(keeper.holdings, id, how);
    else
        keeper.ends[keeper.next_end++ % KEEPER_ENDS] = (struct keeper_end){id, *how};
}

struct spawn_exit keeper_end_of(uint64_t id)
{
    for (size_t i = 0; i < KEEPER_ENDS; i++)
        if (keeper.ends[i].id == id)
            return keeper.ends[i].how;
    return (struct spawn_exit){.unknown = true};
}

/* Notes a pump that continues without the process whose output passes through it. */
static void note_pump(const struct child *child)
{
    const struct child *pump = children_find(keeper.children, child->pump);
    if (child->pump != 0 && pump && pump->id == 0 && pump->owner == child->owner)
        left_pumps_add(&keeper.left, child->pump, child->owner, clock_now());
}

bool keeper_reap_one(void)
{
    struct spawn_exit how;
    const pid_t pid = spawn_find_ended(&how);
    if (pid <= 0)
        return false;
    /* Takes requests first: a SPARE may have been sent before the signal that ended the child. */
    keeper_take_requests();
    if (keeper.reply_waits)
        return true;
    struct child *child = children_find(keeper.children, pid);
    if (child && child->ended) {
        children_remove(keeper.children, pid); /* another process has its pid now */
        child = NULL;
    }
    if (child && child->id == CHILD_UNKNOWN && keeper.n_unheld > 0)
        keeper.n_unheld--;
    if (child && child->id != 0) {
        /* The rest of the process group. Its id is not reused before the child is reaped. */
        if (!child->spared)
            (void)kill(-pid, SIGKILL);
        note_pump(child);
        keep_end(child->id, &how);
        if (keeper.supervisor > 0)
            keeper_reply_exited(child->id, &how);
    }
    if (pid == keeper.supervisor)
        keeper_supervisor_ended(&how);
    else if (leaves_orphans(child))
        keeper_expect_orphans();
    left_pumps_remove(&keeper.left, pid);
    if (child && child->spared)
        child->ended = true;
    else
        children_remove(keeper.children, pid);
    return spawn_reap(pid, &how) == 0;
}

void keeper_spare(struct child *child, bool spared)
{
    child->spared = spared;
    if (spared || !child->ended)
        return;
    if (!child->contained)
        keeper_expect_orphans();
    children_remove(keeper.children, child->pid);
}

/* ---- orphans ---- */

static pid_t cut; /* the digits so far of a number that the end of the last read has cut */

bool keeper_begin_children(void)
{
    cut = 0;
    if (keeper.children_fd < 0)
        keeper.children_fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    return lseek(keeper.children_fd, 0, SEEK_SET) == 0;
}

/* The file has numbers, each followed by a space. */
bool keeper_next_children(void (*fn)(pid_t pid))
{
    char text[4096];
    const ssize_t n = read(keeper.children_fd, text, sizeof(text));
    for (ssize_t i = 0; i < n; i++) {
        if (text[i] >= '0' && text[i] <= '9') {
            cut = cut * 10 + (text[i] - '0');
            continue;
        }
        if (cut > 0)
            fn(cut);
        cut = 0;
    }
    return n > 0;
}

/* Keeps helpers that a living worker has detached: they are in its session, which no process of
 * another worker can join. A contained worker leads only a process group; processes of other
 * contained workers may join that group, and end with their own cgroup. */
static bool is_kept(pid_t pid)
{
    if (keeper.ending)
        return false;
    if (pid == keeper.supervisor || children_find(keeper.children, pid) ||
        children_find(keeper.children, getsid(pid)))
        return true;
    const struct child *leader = children_find(keeper.children, getpgid(pid));
    return leader && leader->contained;
}

/* A keeper without privileges cannot kill a process that has changed its user. Any worker can leave
 * such processes, so the warnings are limited. */
static void warn_protected(pid_t pid)
{
    static struct rate rate;
    if (rate_take(&rate, clock_now(), 1, NULL))
        log_warning("cannot kill process %d, which a worker has left behind: it runs as another "
                    "user, like a set-user-ID program",
                    (int)pid);
}

/* A child that is not reaped keeps its pid, so the signal hits no other process. */
static void end_orphan(pid_t pid)
{
    if (is_kept(pid))
        return;
    if (kill(pid, SIGKILL) == 0)
        keeper.orphans_left = true;
    else if (errno == EPERM)
        warn_protected(pid);
}

/* Children of the killed orphans become orphans when these die, so each such death calls for
 * another search. */
void keeper_end_orphans(void)
{
    if (keeper.orphans_at != USEC_INFINITY && clock_now() >= keeper.orphans_at) {
        keeper.orphans_at = USEC_INFINITY;
        keeper.orphans_left = false;
        keeper.orphans_searched = keeper_begin_children();
    }
    if (keeper.orphans_searched)
        keeper.orphans_searched = keeper_next_children(end_orphan);
}

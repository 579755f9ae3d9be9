/* SPDX-License-Identifier: MIT */
/* Notifications of services (sd_notify(3)). */
#include "shared/base/utf8.h"
#include "supervisor/event/limited-log.h"
#include "supervisor/pool/slot/slot-private.h"
#include "supervisor/process/procfs.h"
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* After this many messages of other processes, a socket that all users may send to is replaced. */
#define IGNORED_MAX 100

/* Returns whether a time limit is running: that of the start, or of a step of the stop. */
static bool slot_is_timed(const struct slot *slot)
{
    const struct config_group *config = slot->pool->config;

    if (slot->state == LIFECYCLE_STARTING)
        return config->timeout_start != USEC_INFINITY;
    return (slot->state == LIFECYCLE_STOPPING || slot->state == LIFECYCLE_KILLING) &&
           slot->worker.signalled == SIGNALLED && config->timeout_stop != USEC_INFINITY;
}

/* Extends the running time limit to `by` microseconds from now; never shortens it. */
static void slot_extend_timeout(struct slot *slot, usec_t by)
{
    const usec_t at = usec_add(slot_now(slot), by);

    if (slot_is_timed(slot) &&
        (!timer_armed(&slot->state_timer) || timer_at(&slot->state_timer) < at))
        timer_arm(slot_timers(slot), &slot->state_timer, at);
}

static void slot_notify(struct slot *slot, const struct notify_message *message)
{
    char text[SLOT_TEXT_MAX];

    if (message->extend > 0)
        slot_extend_timeout(slot, message->extend);

    if (message->status) {
        (void)utf8_escape(text, sizeof(text), message->status, strlen(message->status));
        slot_set_status(slot, text);
    }
    if (message->watchdog)
        slot->worker.watchdog_seen = slot_now(slot);
    if (message->ready && slot->state == LIFECYCLE_STARTING)
        slot_event(slot, LIFECYCLE_EVENT_READY);
    if (message->watchdog_trigger)
        slot_end_worker(slot, DEATH_WATCHDOG, LIFECYCLE_EVENT_WATCHDOG);
}

static void slot_on_notify(void *userdata, const struct notify_message *message);

/* Returns 0 or -ENAMETOOLONG. */
static int slot_notify_path(const struct slot *slot, char path[static 108])
{
    int r = snprintf(path, 108, "%s/notify-%s-%u.sock", slot_context(slot)->runtime_directory,
                     slot->pool->config->name, slot->index);

    return r < 0 || r >= 108 ? -ENAMETOOLONG : 0;
}

/* A service that is root or has CAP_SETUID may change its user before it sends. */
static struct notify_senders slot_notify_senders(const struct slot *slot)
{
    const struct config_group *config = slot->pool->config;
    const uid_t uid = config->user ? config->uid : geteuid();
    const bool may_change =
        uid == 0 || (config->sandbox && config->sandbox->ambient & UINT64_C(1) << CAP_SETUID);

    if (may_change && slot->notify_user != (uid_t)-1)
        return (struct notify_senders){.owner = slot->notify_user};
    return (struct notify_senders){
        .owner = config->user ? config->uid : (uid_t)-1,
        .any_user = may_change,
    };
}

static int slot_bind_notify(struct slot *slot, const struct notify_senders *senders)
{
    struct notify_server *server = &slot->worker.notify;
    char path[108];
    int r = slot_notify_path(slot, path);

    notify_server_deinit(server);
    return r < 0 ? r
                 : notify_server_init(server, slot_context(slot)->loop, path, senders,
                                      slot_on_notify, slot);
}

int slot_open_notify(struct slot *slot)
{
    struct notify_server *server = &slot->worker.notify;
    struct notify_senders senders;
    int r;

    if (slot->notify_user == 0)
        slot->notify_user = (uid_t)-1; /* the last process was root */
    senders = slot_notify_senders(slot);
    if (server->fd >= 0 && !server->blocked && server->senders.owner == senders.owner &&
        server->senders.any_user == senders.any_user) {
        notify_server_renew(server);
        return 0;
    }
    r = slot_bind_notify(slot, &senders);
    return r < 0 ? r : notify_server_hold(server, true);
}

/* Opens another socket for a service that may change its user: a process of another user has
 * blocked or flooded the one that all users may send to. No stranger may send to the new one, so
 * that this happens only once. While the service is root, it is for root, until the next start. */
static void slot_replace_notify(struct slot *slot, uid_t user)
{
    struct notify_senders senders;
    int r;

    slot->notify_user = user != (uid_t)-1 ? user : 0;
    slot_keep(slot);
    senders = slot_notify_senders(slot);
    r = slot_bind_notify(slot, &senders);
    if (r < 0)
        log_error("%s: cannot open another NOTIFY_SOCKET: %s", slot->name, strerror(-r));
    else
        slot_hold(slot);
}

/* A service that is still root may send as any user later; until then it bears the flood. */
static void slot_end_flood(struct slot *slot)
{
    const uid_t user = procfs_user(slot->worker.process.pid);

    slot->worker.notify.n_ignored = 0;
    if (user != 0 && user != (uid_t)-1)
        slot_replace_notify(slot, user);
}

static void slot_on_notify(void *userdata, const struct notify_message *message)
{
    struct slot *slot = userdata;
    struct notify_server *server = &slot->worker.notify;

    if (!message) {
        if (server->senders.any_user)
            slot_replace_notify(slot, procfs_user(slot->worker.process.pid));
        return;
    }
    /* Other processes may know the socket. */
    if (process_has(&slot->worker.process, message->pid) && notify_sender_is_there(message)) {
        if (message->too_long)
            limited_log_write(
                slot_context(slot)->log, slot->pool->config->name, LOG_LEVEL_WARNING,
                "%s: ignoring a message from process %d to NOTIFY_SOCKET: it is longer "
                "than %d bytes",
                slot->name, (int)message->pid, NOTIFY_MAX);
        else
            slot_notify(slot, message);
    } else {
        limited_log_write(
            slot_context(slot)->log, slot->pool->config->name, LOG_LEVEL_NOTICE,
            "%s: ignoring a message from process %d to NOTIFY_SOCKET: the process does "
            "not belong to the service, or has ended",
            slot->name, (int)message->pid);
        if (++server->n_ignored >= IGNORED_MAX && server->senders.any_user)
            slot_end_flood(slot);
    }
}

int slot_adopt_notify(struct slot *slot, int fd)
{
    const struct notify_senders senders = slot_notify_senders(slot);
    char path[108];
    int r = slot_notify_path(slot, path);

    return r < 0 ? r
                 : notify_server_adopt(&slot->worker.notify, slot_context(slot)->loop, fd, path,
                                       &senders, slot_on_notify, slot);
}

void slot_rest_notify(struct slot *slot)
{
    if (slot->worker.notify.fd >= 0 && notify_server_hold(&slot->worker.notify, true) < 0)
        notify_server_deinit(&slot->worker.notify);
}

void slot_settle_notify(struct slot *slot)
{
    if (slot_is_down(slot) || (slot->state == LIFECYCLE_BACKOFF && timer_armed(&slot->state_timer)))
        notify_server_deinit(&slot->worker.notify);
}

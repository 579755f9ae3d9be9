/* SPDX-License-Identifier: MIT */
#include "supervisor/message/monitor-save.h"

#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include "supervisor/message/monitor.h"
#include <errno.h>

/* In the order in which they are notified. */
static int save_observers(const struct actor *monitored, struct saver *saver)
{
    int r = 0;

    list_for_each (node, &monitored->observers) {
        const struct monitor *monitor = list_entry(node, struct monitor, link);
        struct saved_writer row = {0};

        saved_put_number(&row, monitored->reference);
        saved_put_number(&row, monitor->observer->reference);
        r = saved_add(saver, MONITOR_ROW, &row, NULL);
        if (r < 0)
            break;
    }
    return r;
}

int monitors_save(const struct message_context *context, struct saver *saver)
{
    const struct actor *actor;
    size_t cursor = 0;
    int r = 0;

    while (r == 0 && (actor = actor_next(&context->actors, &cursor)))
        r = save_observers(actor, saver);
    return r;
}

int monitor_restore_row(struct message_context *context, struct saved_reader *row)
{
    const uint64_t monitored = saved_get_number(row);
    struct actor *observer = actor_get(context, saved_get_number(row));
    int r;

    if (row->damaged || monitored == 0)
        return -EBADMSG;
    if (!observer || !observer->inbox.endpoint)
        return 0; /* nobody waits any more */
    r = monitor_add(observer, monitored);
    return r == MONITOR_E_TOO_MANY ? -EBADMSG : r;
}

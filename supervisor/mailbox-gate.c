/* SPDX-License-Identifier: MIT */
#include "mailbox.h"

#include "../shared/protocol-actors.h"

static bool mailbox_names_letter(uint16_t kind)
{
    return kind >= PROTOCOL_FORWARD && kind <= PROTOCOL_UNSTASHED;
}

/*
 * Whether everything up to the mark is read. Where reading is suspended it is enough that nothing
 * there speaks of our records: whoever waits for room elsewhere must not for that reason be given
 * none here.
 */
static bool mailbox_read_to_mark(struct mailbox *mailbox)
{
    struct ring_consumer ahead = mailbox->channel.in;
    struct ring_record record;

    if ((int32_t)(ahead.head - mailbox->check_tail) >= 0)
        return true;
    if (!mailbox->suspended)
        return false;
    while ((int32_t)(ahead.head - mailbox->check_tail) < 0)
        if (ring_next(&ahead, &record) != 0 || mailbox_names_letter(record.kind))
            return false;
    return true;
}

static bool mailbox_look_at_head(struct mailbox *mailbox)
{
    const struct channel *channel = &mailbox->channel;
    /* Partner: the release store in the peer's ring_release(). */
    const uint32_t head = atomic_load_explicit(&channel->theirs.header->head, memory_order_acquire);
    const uint32_t gate = atomic_load_explicit(&mailbox->gate, memory_order_relaxed);
    const uint32_t ahead = head - gate;

    if (ahead == 0)
        return false;
    if ((head & (RING_ALIGNMENT - 1)) != 0 || ahead > channel->out.published - gate) {
        mailbox_break(mailbox, "read cursor out of range");
        return false;
    }
    mailbox->check_head = head;
    /* Partner: ring_publish(). Loaded after its head: what was published before is within. */
    mailbox->check_tail = atomic_load_explicit(&channel->theirs.header->tail, memory_order_acquire);
    mailbox->checking = true;
    return true;
}

/* Our records up to the mark, which must be the end of one. */
static bool mailbox_pass(struct mailbox *mailbox)
{
    uint32_t at = atomic_load_explicit(&mailbox->gate, memory_order_relaxed);
    struct ring_record record;

    mailbox->checking = false;
    while ((int32_t)(mailbox->check_head - at) > 0) {
        if (ring_look(&mailbox->channel.out, &at, &record) != 0)
            break;
        if (mailbox->handler->consumed && (int32_t)(mailbox->check_head - at) >= 0)
            mailbox->handler->consumed(mailbox, &record, at);
    }
    if (at != mailbox->check_head) {
        mailbox_break(mailbox, "read cursor within a record");
        return false;
    }
    /* Read by our own ring_reserve() alone. */
    atomic_store_explicit(&mailbox->gate, at, memory_order_relaxed);
    return true;
}

bool mailbox_advance(struct mailbox *mailbox)
{
    if (mailbox->dead || (!mailbox->checking && !mailbox_look_at_head(mailbox)))
        return false;
    return mailbox_read_to_mark(mailbox) && mailbox_pass(mailbox);
}

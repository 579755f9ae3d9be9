/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/mailbox-private.h"

/*
 * Whether everything up to the mark is read, as far as it speaks of our records. Where reading is
 * suspended it is read ahead: whoever waits for room must not be denied it for that very reason.
 * That happens at the end of the turn and never from here, since those who ask for room may
 * themselves be called by somebody who reads, and their own records lead to the next one.
 */
static bool mailbox_has_read_to_mark(struct mailbox *mailbox)
{
    if (mailbox->reading)
        return false; /* the record in hand may still speak of ours; advances afterwards */
    if ((int32_t)(mailbox->channel.in.head - mailbox->check_tail) >= 0)
        return true;
    if (mailbox->suspended)
        loop_defer(mailbox->loop, &mailbox->read_ahead);
    return false;
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

/* The mark must be the end of a record. */
bool mailbox_pass(struct mailbox *mailbox)
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
    /* Whoever noticed it: those who wait are told, but not from within this call. */
    if (mailbox->wants_space) {
        mailbox->space_due = true;
        mailbox_heat(mailbox);
    }
    return true;
}

bool mailbox_advance(struct mailbox *mailbox)
{
    if (mailbox->dead || (!mailbox->checking && !mailbox_look_at_head(mailbox)))
        return false;
    return mailbox_has_read_to_mark(mailbox) && mailbox_pass(mailbox);
}

/* SPDX-License-Identifier: MIT */
#include "mailbox.h"

#include "../shared/protocol-actors.h"

static bool names_letter(uint16_t kind)
{
    return kind >= PROTOCOL_FORWARD && kind <= PROTOCOL_UNSTASHED;
}

bool mailbox_is_passed(struct mailbox *mailbox, uint16_t kind)
{
    const int32_t left = (int32_t)(mailbox->ahead - mailbox->channel.in.head);

    if (!mailbox->is_ahead)
        return false;
    mailbox->is_ahead = left > 0;
    return left >= 0 && names_letter(kind);
}

/* Where reading is suspended: what speaks of our records is taken up to the mark, nothing else. */
static bool mailbox_read_ahead(struct mailbox *mailbox)
{
    struct ring_consumer in = mailbox->channel.in;
    struct ring_record record;

    if (mailbox->is_ahead)
        in.head = in.tail = mailbox->ahead;
    while ((int32_t)(in.head - mailbox->check_tail) < 0) {
        int r = ring_next(&in, &record);

        if (r == 0 && names_letter(record.kind))
            r = mailbox->handler->record(mailbox, &record);
        if (r < 0)
            mailbox_break(mailbox, "record that makes no sense");
        if (r != 0)
            return false;
        mailbox->ahead = in.head;
        mailbox->is_ahead = true;
    }
    return true;
}

/*
 * Whether everything up to the mark is read, as far as it speaks of our records: whoever waits for
 * room here or elsewhere must not for that very reason be given none.
 */
static bool mailbox_read_to_mark(struct mailbox *mailbox)
{
    if ((int32_t)(mailbox->channel.in.head - mailbox->check_tail) >= 0)
        return true;
    return mailbox->suspended && mailbox_read_ahead(mailbox);
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
    /* Whoever noticed it: those who wait are told, but not from within this call. */
    if (mailbox->wants_space) {
        mailbox->space_due = true;
        if (mailbox->channel.backend == WAKE_FUTEX)
            loop_unwatch(mailbox->loop, &mailbox->tail_watch); /* armed again when it cools */
        channel_end_sleep(&mailbox->channel);
        loop_heat(mailbox->loop, &mailbox->hot);
    }
    return true;
}

bool mailbox_advance(struct mailbox *mailbox)
{
    if (mailbox->dead || (!mailbox->checking && !mailbox_look_at_head(mailbox)))
        return false;
    return mailbox_read_to_mark(mailbox) && mailbox_pass(mailbox);
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/mailbox-private.h"

#include "shared/protocol-actors.h"
#include <errno.h>

/*
 * Records that are taken before their turn, while one before them waits: those that speak of our
 * records, because room depends on them, and those that the handler calls urgent. Each is skipped
 * when its turn comes.
 */

static bool names_letter(uint16_t kind)
{
    return kind >= PROTOCOL_FORWARD && kind <= PROTOCOL_UNSTASHED;
}

/* Whether the record just read lies before the end of what was taken ahead. */
static bool covers(struct mailbox_ahead *ahead, const struct ring_consumer *in)
{
    const int32_t left = (int32_t)(ahead->end - in->head);

    if (!ahead->is)
        return false;
    ahead->is = left > 0;
    return left >= 0;
}

bool mailbox_is_passed(struct mailbox *mailbox, uint16_t kind)
{
    const struct ring_consumer *in = &mailbox->channel.in;
    bool letter, urgent;

    if (!mailbox->letters.is && !mailbox->urgent.is)
        return false;
    letter = covers(&mailbox->letters, in);
    urgent = covers(&mailbox->urgent, in);
    return (letter && names_letter(kind)) || (urgent && kind == mailbox->handler->urgent_kind);
}

/* Reads on from where it was taken ahead to. */
static struct ring_consumer reader_behind(const struct mailbox *mailbox,
                                          const struct mailbox_ahead *ahead)
{
    struct ring_consumer in = mailbox->channel.in;

    if (ahead->is)
        in.head = in.tail = ahead->end;
    return in;
}

static void set_ahead(struct mailbox_ahead *ahead, const struct mailbox *mailbox, uint32_t end)
{
    *ahead = (struct mailbox_ahead){.is = end != mailbox->channel.in.head, .end = end};
}

/* ---- what speaks of our records ---- */

static int take_letter(struct mailbox *mailbox, const struct ring_record *record)
{
    const struct mailbox_handler *handler = mailbox->handler;
    int r;

    if (!names_letter(record->kind))
        return 0;
    mailbox->reading = true;
    r = handler->letter ? handler->letter(mailbox, record) : handler->record(mailbox, record);
    mailbox->reading = false;
    return r;
}

/* A turn's share. 0 or negative = violation; the mark was published, so there must be a record. */
static int read_letters(struct mailbox *mailbox)
{
    struct ring_consumer in = reader_behind(mailbox, &mailbox->letters);
    struct ring_record record;

    for (unsigned n = 0; n < MAILBOX_BATCH && (int32_t)(in.head - mailbox->check_tail) < 0; n++) {
        if (ring_next(&in, &record) != 0 || take_letter(mailbox, &record) != 0)
            return -EPROTO;
        set_ahead(&mailbox->letters, mailbox, in.head);
    }
    return 0;
}

static bool letters_are_read(const struct mailbox *mailbox)
{
    const struct mailbox_ahead *letters = &mailbox->letters;
    const uint32_t end = letters->is ? letters->end : mailbox->channel.in.head;

    return (int32_t)(end - mailbox->check_tail) >= 0;
}

void mailbox_on_read_ahead(struct loop_deferred *deferred)
{
    struct mailbox *mailbox = list_entry(deferred, struct mailbox, read_ahead);

    if (mailbox->dead || !mailbox->suspended || !mailbox->checking)
        return;
    if (read_letters(mailbox) < 0)
        mailbox_break(mailbox, "record that makes no sense");
    if (mailbox->dead || !mailbox->checking)
        return;
    if (letters_are_read(mailbox))
        (void)mailbox_pass(mailbox);
    else
        loop_defer(mailbox->loop, &mailbox->read_ahead);
}

/* ---- what is urgent ---- */

uint32_t mailbox_urgent_end(const struct mailbox *mailbox)
{
    return mailbox->urgent.is ? mailbox->urgent.end : mailbox->channel.in.head;
}

/* As the handler's look(). */
static int look_at(struct mailbox *mailbox, const struct ring_record *record)
{
    int r;

    mailbox->reading = true;
    r = mailbox->handler->look(mailbox, record, !mailbox->urgent.is);
    mailbox->reading = false;
    mailbox->urgent_waits = r == MAILBOX_E_FULL;
    return r;
}

bool mailbox_read_urgent(struct mailbox *mailbox)
{
    struct ring_consumer in = reader_behind(mailbox, &mailbox->urgent);
    struct ring_record record;
    bool found = false;

    for (unsigned n = 0; n < MAILBOX_BATCH && !mailbox->urgent_waits && !mailbox->dead; n++) {
        int r = ring_next(&in, &record);

        if (r == RING_E_EMPTY) {
            set_ahead(&mailbox->urgent, mailbox, in.head); /* behind a padding record */
            break;
        }
        if (r == 0)
            r = look_at(mailbox, &record);
        if (r < 0)
            mailbox_break(mailbox, "record that makes no sense");
        if (r != 0)
            break;
        found = true;
        set_ahead(&mailbox->urgent, mailbox, in.head);
    }
    return found;
}

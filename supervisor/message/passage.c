/* SPDX-License-Identifier: MIT */
#include "supervisor/message/passage.h"

#include "supervisor/channel/mailbox.h"
#include "supervisor/group/cell.h"
#include "supervisor/message/delivery.h"
#include "supervisor/message/message-log.h"
#include "supervisor/message/pool.h"
#include "supervisor/pool/slot.h"
#include <errno.h>
#include <string.h>

struct actor *passage_find_inbox(struct actor *to, uint32_t *ret_flags)
{
    if (to->kind == ACTOR_POOL && !to->paused && postbox_idle(&to->postbox)) {
        *ret_flags = PROTOCOL_MESSAGE_POOL;
        return pool_pick(&to->pool, to->cell->config->batch_max);
    }
    *ret_flags = 0;
    return delivery_is_direct(to) ? to : NULL;
}

int passage_begin(struct passage *passage, struct actor *to, uint32_t head, const void *bytes,
                  uint32_t size)
{
    const uint32_t inline_max = to->mailbox->channel.mine.header->inline_max;
    void *body;
    int r;

    if (to->full || size > inline_max + PROTOCOL_CONTENT_FIXED)
        return PASSAGE_E_CLOSED;
    r = mailbox_reserve(to->mailbox, head + size, &body);
    if (r != 0) {
        to->full = r == MAILBOX_E_FULL;
        return PASSAGE_E_CLOSED;
    }
    *passage = (struct passage){.to = to, .body = body, .head = head};
    memcpy(passage->body + head, bytes, size);
    r = protocol_get_content(passage->body + head, size, &passage->content, &passage->size);
    if (r < 0 || !topic_type_valid(passage->content.topic.type, passage->content.topic.type_size))
        return -EBADMSG;
    if (passage->content.payload.form != PAYLOAD_INLINE ||
        passage->content.payload.size > inline_max)
        return PASSAGE_E_CLOSED;
    return 0;
}

void passage_end_message(struct passage *passage, struct protocol_message *message)
{
    struct message_writer writer = message_writer(passage->body, passage->head);
    struct actor *to = passage->to;

    message->content = passage->content;
    protocol_put_message_head(&writer, message);
    mailbox_commit(to->mailbox, PROTOCOL_MESSAGE, passage->head + passage->size);
    (message->flags & PROTOCOL_MESSAGE_POOL ? to->slot->cell->actor : to)->counters.accepted++;
    if (to->log != 0)
        message_log(to, ACTOR_LOG_ENQUEUED,
                    &(struct message_log_entry){.id = message->id,
                                                .sender = message->sender,
                                                .topic = &message->content.topic});
    delivery_note_sent(to, message);
}

void passage_end_reply(struct passage *passage, uint64_t cookie, uint64_t from)
{
    memcpy(passage->body, &cookie, sizeof(cookie));
    memcpy(passage->body + sizeof(cookie), &from, sizeof(from));
    mailbox_commit(passage->to->mailbox, PROTOCOL_REPLIED, passage->head + passage->size);
}

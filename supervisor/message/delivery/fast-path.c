/* SPDX-License-Identifier: MIT */
#include "supervisor/message/delivery/fast-path.h"

#include "supervisor/channel/endpoint.h"
#include "supervisor/message/actor-log.h"
#include "supervisor/message/delivery/delivery.h"
#include "supervisor/message/delivery/least-loaded.h"
#include <errno.h>
#include <string.h>

struct actor *fast_path_find_inbox(struct actor *to, uint32_t *ret_flags)
{
    if (to->members && !to->paused && mailbox_idle(&to->mailbox)) {
        *ret_flags = PROTOCOL_MESSAGE_POOL;
        return least_loaded_pick(to->members);
    }
    *ret_flags = 0;
    return actor_is_direct(to) ? to : NULL;
}

int fast_path_begin(struct fast_path *fast_path, struct actor *to, uint32_t head, const void *bytes,
                    uint32_t size)
{
    const uint32_t inline_max = to->inbox.endpoint->channel.mine.header->inline_max;
    void *body;
    int r;

    if (to->inbox.full || size > inline_max + PROTOCOL_CONTENT_FIXED)
        return FAST_PATH_E_CLOSED;
    r = endpoint_reserve(to->inbox.endpoint, head + size, &body);
    if (r != 0) {
        to->inbox.full = r == ENDPOINT_E_FULL;
        return FAST_PATH_E_CLOSED;
    }
    *fast_path = (struct fast_path){.to = to, .body = body, .head = head};
    memcpy(fast_path->body + head, bytes, size);
    r = protocol_get_content(fast_path->body + head, size, &fast_path->content, &fast_path->size);
    if (r < 0 ||
        !topic_type_valid(fast_path->content.topic.type, fast_path->content.topic.type_size))
        return -EBADMSG;
    if (fast_path->content.payload.form != PAYLOAD_INLINE ||
        fast_path->content.payload.size > inline_max)
        return FAST_PATH_E_CLOSED;
    return 0;
}

void fast_path_end_message(struct fast_path *fast_path, struct protocol_message *message)
{
    struct actor *to = fast_path->to;

    message->content = fast_path->content;
    protocol_put_message_head(fast_path->body, message);
    endpoint_commit(to->inbox.endpoint, PROTOCOL_MESSAGE, fast_path->head + fast_path->size);
    (message->flags & PROTOCOL_MESSAGE_POOL ? to->pool : to)->counters.accepted++;
    if (to->log != 0)
        actor_log_message(to, ACTOR_LOG_ENQUEUED, message, NULL);
    delivery_note_sent(to, message);
}

void fast_path_end_reply(struct fast_path *fast_path, uint64_t cookie, uint64_t from)
{
    memcpy(fast_path->body, &cookie, sizeof(cookie));
    memcpy(fast_path->body + sizeof(cookie), &from, sizeof(from));
    endpoint_commit(fast_path->to->inbox.endpoint, PROTOCOL_REPLIED,
                    fast_path->head + fast_path->size);
}

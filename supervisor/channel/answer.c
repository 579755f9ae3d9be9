/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/answer.h"

#include "shared/protocol-requests.h"
#include <string.h>

/* `size` is what the put of the record returned. */
static int finish(struct mailbox *mailbox, uint16_t kind, int size)
{
    if (size < 0)
        return size;
    mailbox_commit(mailbox, kind, (uint32_t)size);
    return 0;
}

int answer_refuse(struct mailbox *mailbox, uint64_t cookie, int error, const char *reason)
{
    const struct protocol_refused refused = {.cookie = cookie,
                                             .error = (uint32_t)error,
                                             .reason = reason,
                                             .reason_size = (uint32_t)strlen(reason)};
    void *body;
    int r;

    r = mailbox_reserve(mailbox, PROTOCOL_BODY_MAX, &body);
    if (r != 0)
        return r;
    return finish(mailbox, PROTOCOL_REFUSED,
                  protocol_put_refused(body, PROTOCOL_BODY_MAX, &refused));
}

int answer_errno(struct mailbox *mailbox, uint64_t cookie, int r)
{
    return answer_refuse(mailbox, cookie, -r, strerror(-r));
}

int answer_found(struct mailbox *mailbox, const struct protocol_found *found)
{
    void *body;
    int r;

    r = mailbox_reserve(mailbox, sizeof(*found), &body);
    if (r != 0)
        return r;
    return finish(mailbox, PROTOCOL_FOUND, protocol_put_found(body, sizeof(*found), found));
}

int answer_accept(struct mailbox *mailbox, uint64_t cookie, const struct protocol_id *id)
{
    const struct protocol_accepted accepted = {.cookie = cookie, .id = *id};
    void *body;
    int r;

    r = mailbox_reserve(mailbox, PROTOCOL_BODY_MAX, &body);
    if (r != 0)
        return r;
    return finish(mailbox, PROTOCOL_ACCEPTED,
                  protocol_put_accepted(body, PROTOCOL_BODY_MAX, &accepted));
}

int answer_value(struct mailbox *mailbox, uint64_t cookie, uint64_t value)
{
    const struct protocol_answer answer = {.cookie = cookie, .value = value};
    void *body;
    int r;

    r = mailbox_reserve(mailbox, sizeof(answer), &body);
    if (r != 0)
        return r;
    return finish(mailbox, PROTOCOL_ANSWER, protocol_put_answer(body, sizeof(answer), &answer));
}

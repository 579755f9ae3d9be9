/* SPDX-License-Identifier: MIT */
#include "supervisor/channel/answer.h"

#include "shared/protocol/protocol-requests.h"
#include <string.h>

/* `size` is the return value of the record's put. */
static int finish(struct endpoint *endpoint, uint16_t kind, int size)
{
    if (size < 0)
        return size;
    endpoint_commit(endpoint, kind, (uint32_t)size);
    return 0;
}

int answer_refuse(struct endpoint *endpoint, uint64_t cookie, int error, const char *reason)
{
    const struct protocol_refused refused = {.cookie = cookie,
                                             .error = (uint32_t)error,
                                             .reason = reason,
                                             .reason_size = (uint32_t)strlen(reason)};
    void *body;
    int r;

    r = endpoint_reserve(endpoint, PROTOCOL_BODY_MAX, &body);
    return r != 0 ? r
                  : finish(endpoint, PROTOCOL_REFUSED,
                           protocol_put_refused(body, PROTOCOL_BODY_MAX, &refused));
}

int answer_errno(struct endpoint *endpoint, uint64_t cookie, int r)
{
    return answer_refuse(endpoint, cookie, -r, strerror(-r));
}

int answer_found(struct endpoint *endpoint, const struct protocol_found *found)
{
    void *body;
    int r = endpoint_reserve(endpoint, sizeof(*found), &body);

    return r != 0
               ? r
               : finish(endpoint, PROTOCOL_FOUND, protocol_put_found(body, sizeof(*found), found));
}

int answer_accept(struct endpoint *endpoint, uint64_t cookie, const struct protocol_id *id)
{
    const struct protocol_accepted accepted = {.cookie = cookie, .id = *id};
    void *body;
    int r = endpoint_reserve(endpoint, PROTOCOL_BODY_MAX, &body);

    return r != 0 ? r
                  : finish(endpoint, PROTOCOL_ACCEPTED,
                           protocol_put_accepted(body, PROTOCOL_BODY_MAX, &accepted));
}

int answer_value(struct endpoint *endpoint, uint64_t cookie, uint64_t value)
{
    const struct protocol_answer answer = {.cookie = cookie, .value = value};
    void *body;
    int r = endpoint_reserve(endpoint, sizeof(answer), &body);

    return r != 0 ? r
                  : finish(endpoint, PROTOCOL_ANSWER,
                           protocol_put_answer(body, sizeof(answer), &answer));
}

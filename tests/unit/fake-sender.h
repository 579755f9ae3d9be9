/* SPDX-License-Identifier: MIT */
#pragma once

/* What the supervisor and an actor in a fake worker say to each other about messages, for tests. */

#include "shared/protocol/protocol-requests.h"
#include "tests/unit/fake-supervisor.h"
#include <string.h>

#define FAKE_ROOM (FAKE_INLINE_MAX + PROTOCOL_MESSAGE_FIXED + 256u)

static inline struct protocol_content fake_content(const char *type, const void *data, size_t size)
{
    return (struct protocol_content){
        .topic = {.type = type, .type_size = (uint32_t)strlen(type)},
        .payload = {.form = PAYLOAD_INLINE, .data = data, .size = size},
    };
}

static inline void fake_deliver(struct fake *fake, const struct protocol_message *message)
{
    static char body[FAKE_ROOM];

    fake_put(fake, (enum protocol_kind)PROTOCOL_MESSAGE, body,
             protocol_put_message(body, sizeof(body), message));
}

static inline void fake_deliver_data(struct fake *fake, uint64_t id, const char *type,
                                     const void *data, size_t size)
{
    struct protocol_message message = {
        .id = id, .sender = 100, .ask = 500 + id, .content = fake_content(type, data, size)};

    if (size > FAKE_INLINE_MAX)
        message.content.payload = fake_blob(fake, data, size);
    fake_deliver(fake, &message);
}

static inline void fake_tell(struct fake *fake, uint64_t id, const char *type, const char *text)
{
    fake_deliver_data(fake, id, type, text, strlen(text));
}

static inline void fake_replied(struct fake *fake, uint64_t cookie, const char *type,
                                const char *text)
{
    struct protocol_replied replied = {
        .cookie = cookie, .from = 100, .content = fake_content(type, text, strlen(text))};
    static char body[FAKE_ROOM];

    fake_put(fake, (enum protocol_kind)PROTOCOL_REPLIED, body,
             protocol_put_replied(body, sizeof(body), &replied));
}

static inline void fake_replied_blob(struct fake *fake, uint64_t cookie, const void *data,
                                     size_t size)
{
    struct protocol_replied replied = {.cookie = cookie, .content = fake_content("", "", 0)};
    static char body[FAKE_ROOM];

    replied.content.payload = fake_blob(fake, data, size);
    fake_put(fake, (enum protocol_kind)PROTOCOL_REPLIED, body,
             protocol_put_replied(body, sizeof(body), &replied));
}

static inline void fake_refuse(struct fake *fake, unsigned kind, uint64_t cookie, uint32_t error,
                               const char *reason)
{
    struct protocol_refused refused = {.cookie = cookie,
                                       .error = error,
                                       .reason = reason,
                                       .reason_size = (uint32_t)strlen(reason)};
    char body[256];

    fake_put(fake, (enum protocol_kind)kind, body,
             protocol_put_refused(body, sizeof(body), &refused));
}

static inline void fake_answer(struct fake *fake, uint64_t cookie, uint64_t value)
{
    struct protocol_answer answer = {.cookie = cookie, .value = value};
    char body[64];

    fake_put(fake, (enum protocol_kind)PROTOCOL_ANSWER, body,
             protocol_put_answer(body, sizeof(body), &answer));
}

static inline void fake_found(struct fake *fake, uint64_t cookie, uint64_t reference)
{
    struct protocol_found found = {.cookie = cookie, .group = reference};
    char body[64];

    fake_put(fake, PROTOCOL_FOUND, body, protocol_put_found(body, sizeof(body), &found));
}

static inline void fake_terminated(struct fake *fake, uint64_t reference, const char *cause)
{
    struct protocol_terminated what = {
        .reference = reference, .cause = cause, .cause_size = (uint32_t)strlen(cause)};
    char body[256];

    fake_put(fake, (enum protocol_kind)PROTOCOL_TERMINATED, body,
             protocol_put_terminated(body, sizeof(body), &what));
}

/* ---- what the actor says ---- */

static inline struct ring_record fake_expect_kind(struct fake *fake, unsigned kind)
{
    struct ring_record record = fake_next(fake);

    ck_assert_uint_eq(record.kind, kind);
    return record;
}

/* Content as "type:payload". */
static inline char *fake_text(const struct protocol_content *content)
{
    static char text[FAKE_ROOM];

    ck_assert_int_eq(content->payload.form, PAYLOAD_INLINE);
    snprintf(text, sizeof(text), "%.*s:%.*s", (int)content->topic.type_size, content->topic.type,
             (int)content->payload.size, (const char *)content->payload.data);
    return text;
}

static inline struct protocol_ask fake_expect_ask(struct fake *fake, const char *expected)
{
    struct ring_record record = fake_expect_kind(fake, PROTOCOL_ASK);
    struct protocol_ask ask;

    ck_assert_int_eq(protocol_get_ask(record.body, record.size, &ask), 0);
    ck_assert_str_eq(fake_text(&ask.content), expected);
    return ask;
}

static inline void fake_expect_tell(struct fake *fake, const char *expected)
{
    struct ring_record record = fake_expect_kind(fake, PROTOCOL_TELL);
    struct protocol_tell tell;

    ck_assert_int_eq(protocol_get_tell(record.body, record.size, &tell), 0);
    ck_assert_str_eq(fake_text(&tell.content), expected);
}

static inline void fake_expect_reply(struct fake *fake, uint64_t ask, const char *expected)
{
    struct ring_record record = fake_expect_kind(fake, PROTOCOL_REPLY);
    struct protocol_reply reply;

    ck_assert_int_eq(protocol_get_reply(record.body, record.size, &reply), 0);
    ck_assert_str_eq(fake_text(&reply.content), expected);
    ck_assert_uint_eq(reply.ask, ask);
}

static inline void fake_expect_stash(struct fake *fake, unsigned kind, uint64_t id, uint32_t flags)
{
    struct ring_record record = fake_expect_kind(fake, kind);
    struct protocol_stash stash;

    ck_assert_int_eq(protocol_get_stash(record.body, record.size, &stash), 0);
    ck_assert_uint_eq(stash.message, id);
    ck_assert_uint_eq(stash.flags, flags);
}

static inline void fake_expect_verdict(struct fake *fake, unsigned kind, uint64_t id, int code,
                                       const char *text)
{
    struct ring_record record = fake_expect_kind(fake, kind);
    struct protocol_verdict verdict;

    ck_assert_int_eq(protocol_get_verdict(record.body, record.size, &verdict), 0);
    ck_assert_uint_eq(verdict.message, id);
    ck_assert_int_eq(verdict.code, code);
    ck_assert_uint_eq(verdict.text_size, strlen(text));
    ck_assert_mem_eq(verdict.text, text, strlen(text));
}

/* Waits until everything put so far has been handled: nothing holds the inbox. */
static inline void fake_consumed(struct fake *fake)
{
    const _Atomic uint32_t *head = &fake->channel.their_words->head;

    while (atomic_load(head) != fake->channel.out.published)
        sched_yield();
}

static inline void fake_control(struct fake *fake, uint32_t control)
{
    atomic_store(&fake->channel.words->control, control);
    atomic_fetch_add(&fake->channel.words->bell, 1);
    if (fake->channel.backend == WAKE_FUTEX)
        wake_futex_wake(&fake->channel.words->bell);
    else
        wake_eventfd_wake(fake->channel.wake_fd);
}

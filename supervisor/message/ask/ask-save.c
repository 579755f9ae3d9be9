/* SPDX-License-Identifier: MIT */
#include "supervisor/message/ask/ask-save.h"

#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include <errno.h>

#define ROW ask
#define ASK_FIELDS(F)                                                                              \
    F(UPGRADE, handle, NUMBER(handle))                                                             \
    F(UPGRADE, cookie, NUMBER(cookie))                                                             \
    F(UPGRADE, copies, NUMBER(copies))                                                             \
    F(UPGRADE, weight, NUMBER(weight))
static const struct field FIELDS[] = {ASK_FIELDS(FIELD)};
const struct record ASK_RECORD = RECORD(ASK_ROW, FIELDS);

static int save_ask(const struct ask *ask, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_number(&row, ask->asker->reference);
    saved_put_number(&row, timer_armed(&ask->timer) ? timer_at(&ask->timer) : USEC_INFINITY);
    record_put(&row, &ASK_RECORD, ask);
    saved_put_bytes(&row, ask->wanted, ask->wanted_size);
    return saved_add(saver, ASK_ROW, &row, NULL);
}

int asks_save(const struct actor *asker, struct saver *saver)
{
    int r = 0;

    list_for_each (node, &asker->asks) {
        r = save_ask(list_entry(node, struct ask, link), saver);
        if (r < 0)
            break;
    }
    return r;
}

int ask_restore_row(struct message_context *context, struct saved_reader *row)
{
    struct ask_options options = {.asker = actor_get(context, saved_get_number(row))};
    const usec_t at = saved_get_number(row);
    struct ask saved = {0}, *ask;
    size_t wanted_size;
    int r;

    record_get(row, &ASK_RECORD, &saved);
    options.cookie = saved.cookie;
    options.wanted.type = saved_get_bytes(row, &wanted_size);
    options.wanted.type_size = (uint32_t)wanted_size;
    if (row->damaged || wanted_size > TOPIC_TYPE_MAX ||
        !topic_type_valid(options.wanted.type, wanted_size) || saved.copies == 0 ||
        saved.weight == 0 || saved.handle == 0 || ask_get(&context->asks, saved.handle))
        return -EBADMSG;
    if (!options.asker || !options.asker->inbox.endpoint)
        return 0; /* the caller has gone */
    r = ask_restore(&ask, context, &options, saved.handle, at);
    if (r < 0)
        return r;
    ask->copies = saved.copies;
    ask->weight = saved.weight;
    options.asker->n_asks += ask->weight - 1;
    return 0;
}

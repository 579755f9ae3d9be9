/* SPDX-License-Identifier: MIT */
#include "supervisor/message/ask/ask-save.h"

#include "supervisor/message/actor.h"
#include "supervisor/message/message-context.h"
#include <errno.h>

static int save_table(const struct ask_table *table, struct saver *saver)
{
    struct saved_writer row = {0};

    for (uint32_t i = 0; i < table->n_entries; i++) {
        saved_put_number(&row, table->entries[i]->generation);
        saved_put_number(&row, table->entries[i]->asked_by);
    }
    return saved_add(saver, ASK_TABLE_ROW, &row, NULL);
}

static void put_recipients(struct saved_writer *row, const struct recipients *recipients)
{
    const size_t list = saved_begin(row);

    for (uint32_t i = 0; recipients && i < recipients->n_places; i++)
        if (recipients->places[i] != 0)
            saved_put_number(row, recipients->places[i]);
    saved_end(row, list);
}

#define ROW ask
#define ASK_FIELDS(F)                                                                              \
    F(UPGRADE, handle, NUMBER(handle))                                                             \
    F(UPGRADE, cookie, NUMBER(cookie))                                                             \
    F(UPGRADE, recipient, NUMBER(recipient))                                                       \
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
    saved_put_number(&row, ask->recipients != NULL);
    put_recipients(&row, ask->recipients);
    return saved_add(saver, ASK_ROW, &row, NULL);
}

int asks_save(const struct message_context *context, struct saver *saver)
{
    const struct ask_table *table = &context->asks;
    int r = save_table(table, saver);

    for (uint32_t i = 0; r == 0 && i < table->n_entries; i++)
        if (table->entries[i]->handle != 0 && table->entries[i]->asker)
            r = save_ask(table->entries[i], saver);
    return r;
}

int ask_table_restore(struct message_context *context, struct saved_reader *row)
{
    int r = 0;

    while (r == 0 && saved_has_more(row)) {
        const uint32_t generation = (uint32_t)saved_get_below(row, UINT32_MAX);
        const uint64_t asked_by = saved_get_number(row);

        r = row->damaged ? -EBADMSG : ask_table_add_place(context, generation, asked_by);
    }
    return r;
}

static int get_recipients(struct saved_reader *row, struct recipients **ret)
{
    const bool several = saved_get_below(row, 1);
    struct saved_reader list = saved_get_fields(row);
    int r = several ? recipients_reserve(ret, 1) : 0;

    while (r == 0 && several && saved_has_more(&list)) {
        const uint64_t reference = saved_get_number(&list);

        if (reference != 0 && !list.damaged)
            r = recipients_add(ret, reference);
    }
    return r;
}

int ask_restore_row(struct message_context *context, struct saved_reader *row)
{
    struct ask_options options = {.asker = actor_get(context, saved_get_number(row))};
    const usec_t at = saved_get_number(row);
    struct ask saved = {0}, *ask;
    struct ask_copies copies;
    size_t wanted_size;
    int r;

    record_get(row, &ASK_RECORD, &saved);
    options.cookie = saved.cookie;
    copies = (struct ask_copies){
        .recipient = saved.recipient, .n = saved.copies, .weight = saved.weight};
    options.wanted.type = saved_get_bytes(row, &wanted_size);
    options.wanted.type_size = (uint32_t)wanted_size;
    if (row->damaged || wanted_size > TOPIC_TYPE_MAX ||
        !topic_type_valid(options.wanted.type, wanted_size) || copies.n == 0 || copies.weight == 0)
        return -EBADMSG;
    if (!options.asker || !options.asker->inbox.endpoint)
        return 0; /* nobody waits any more */
    r = ask_restore(&ask, context, &options, saved.handle, at, &copies);
    if (r == 0)
        r = get_recipients(row, &ask->recipients);
    return r;
}

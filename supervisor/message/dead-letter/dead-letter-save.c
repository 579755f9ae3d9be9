/* SPDX-License-Identifier: MIT */

/* Dead letters across an upgrade. */

#include "supervisor/message/message-save.h"

#include "supervisor/event/death.h"
#include <errno.h>

#define ROW dead_letter
#define LETTER_FIELDS(F)                                                                           \
    F(UPGRADE, id, NUMBER(id))                                                                     \
    F(UPGRADE, row, NUMBER(row))                                                                   \
    F(UPGRADE, at, NUMBER(at))                                                                     \
    F(UPGRADE, reason, BELOW(reason, _DEAD_N_REASONS - 1))                                         \
    F(UPGRADE, sender, WORD(sender))                                                               \
    F(UPGRADE, recipient, WORD(recipient))                                                         \
    F(UPGRADE, job, WORD(job))                                                                     \
    F(UPGRADE, text, WORD(text))                                                                   \
    F(UPGRADE, tags, WORD(tags))                                                                   \
    F(UPGRADE, traceparent, WORD(traceparent))                                                     \
    F(UPGRADE, unique_high, NUMBER(unique_high))                                                   \
    F(UPGRADE, unique_low, NUMBER(unique_low))                                                     \
    F(UPGRADE, max_retries, NUMBER(options.max_retries))                                           \
    F(UPGRADE, timeout, NUMBER(options.timeout))                                                   \
    F(UPGRADE, backoff_min, NUMBER(options.backoff_min))                                           \
    F(UPGRADE, backoff_max, NUMBER(options.backoff_max))                                           \
    F(UPGRADE, priority, NUMBER(options.priority))                                                 \
    F(UPGRADE, cost, NUMBER(options.cost))                                                         \
    F(UPGRADE, sender_ref, NUMBER(sender_ref))                                                     \
    F(UPGRADE, recipient_ref, NUMBER(recipient_ref))                                               \
    F(UPGRADE, message, NUMBER(message))                                                           \
    F(UPGRADE, sent_at, NUMBER(sent_at))                                                           \
    F(UPGRADE, submitter_uid, NUMBER(submitter_uid))                                               \
    F(UPGRADE, code, NUMBER(code))                                                                 \
    F(UPGRADE, attempts, NUMBER(attempts))                                                         \
    F(UPGRADE, cause, BELOW(cause, _ATTEMPT_N_CAUSES - 1))                                         \
    F(UPGRADE, payload_dropped, NUMBER(payload_dropped))                                           \
    F(UPGRADE, payload_size, NUMBER(payload_size))
const struct record DEAD_LETTER_RECORD = RECORD(DEAD_LETTER_ROW, LETTER_FIELDS);

/* ---- saving ---- */

static void put_deaths(struct saved_writer *row, const struct dead_letter *letter)
{
    const size_t list = saved_begin(row);

    for (size_t i = 0; i < letter->n_deaths; i++)
        death_put(row, letter->deaths[i]);
    saved_end(row, list);
}

/* That of a durable job has its payload on disk. */
static void save_letter(const struct dead_letter *letter, struct saver *saver)
{
    struct saved_writer row = {0};

    record_put(&row, &DEAD_LETTER_RECORD, letter);
    topic_put(&row, &letter->topic);
    put_deaths(&row, letter);
    saved_add(saver, DEAD_LETTER_ROW, &row, letter->row == 0 ? &letter->payload : NULL);
}

void dead_letters_save(const struct dead_letters *letters, struct saver *saver)
{
    for (unsigned queue = 0; queue < _DEAD_N_QUEUES; queue++)
        list_for_each_entry (letter, &letters->rings[queue], struct dead_letter, link)
            save_letter(letter, saver);
}

/* ---- restoring ---- */

static void get_deaths(struct saved_reader *row, struct death_log *log, struct dead_letter *letter)
{
    struct saved_reader list = saved_get_fields(row);

    while (saved_has_more(&list) && letter->n_deaths < DEAD_LETTER_DEATHS_MAX) {
        letter->deaths[letter->n_deaths] = death_get(&list, log);
        letter->n_deaths += letter->deaths[letter->n_deaths] != NULL;
    }
}

/* Reads a letter, with references to its deaths. Returns 0 or -EBADMSG. */
static int get_letter(struct saved_reader *row, struct death_log *log, struct dead_letter *ret)
{
    int r;

    *ret = (struct dead_letter){0};
    record_get(row, &DEAD_LETTER_RECORD, ret);
    r = topic_get(row, &ret->topic);
    get_deaths(row, log, ret);
    return r < 0 || row->damaged || !dead_letter_id_valid(ret->id) || ret->at == 0 ? -EBADMSG : 0;
}

static void drop_deaths(const struct dead_letter *letter)
{
    for (size_t i = 0; i < letter->n_deaths; i++)
        death_unref(letter->deaths[i]);
}

int dead_letter_restore_row(struct dead_letters *letters, struct death_log *deaths,
                            struct waiting_room *room, struct saved_reader *row)
{
    const struct saved_reader whole = *row;
    struct payload payload = PAYLOAD_NULL;
    struct dead_letter saved;
    int r = get_letter(row, deaths, &saved);

    if (r == 0 && saved.row != 0)
        r = waiting_room_add(room, DEAD_LETTER_ROW, (uint64_t)saved.row, &whole);
    else if (r == 0)
        r = payload_set(&payload, row->payload, row->payload_size);
    if (r == 0 && saved.row == 0 && dead_letter_restore(letters, &saved, &payload) == 0)
        r = -ENOMEM;
    drop_deaths(&saved);
    return r;
}

bool dead_letter_claim(struct dead_letters *letters, struct death_log *deaths,
                       struct waiting_room *room, const struct dead_letter *like,
                       struct payload *payload)
{
    struct dead_letter saved = {0};
    struct saved_reader row;
    bool is;

    if (!waiting_room_find(room, DEAD_LETTER_ROW, (uint64_t)like->row, &row))
        return false;
    is = get_letter(&row, deaths, &saved) == 0 && saved.id == like->id;
    saved.payload_dropped = like->payload_dropped;
    if (is)
        (void)dead_letter_restore(letters, &saved, payload);
    drop_deaths(&saved);
    waiting_room_remove(room, DEAD_LETTER_ROW, (uint64_t)like->row);
    return is;
}

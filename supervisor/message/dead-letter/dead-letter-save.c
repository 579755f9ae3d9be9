/* SPDX-License-Identifier: MIT */
#include "supervisor/message/dead-letter/dead-letter-save.h"

#include "supervisor/event/death-save.h"
#include "supervisor/message/envelope-save.h"
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
    F(UPGRADE, max_retries, NUMBER(options.max_retries))                                           \
    F(UPGRADE, timeout, NUMBER(options.timeout))                                                   \
    F(UPGRADE, backoff_min, NUMBER(options.backoff_min))                                           \
    F(UPGRADE, backoff_max, NUMBER(options.backoff_max))                                           \
    F(UPGRADE, priority, NUMBER(options.priority))                                                 \
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
static const struct field LETTER_TABLE[] = {LETTER_FIELDS(FIELD)};
const struct record DEAD_LETTER_RECORD = RECORD(DEAD_LETTER_ROW, LETTER_TABLE);
#undef ROW

#define ROW dead_letters
#define TALLY_FIELDS(F)                                                                            \
    F(UPGRADE, last_id, BELOW(last_id, DEAD_LETTER_ID_MAX))                                        \
    F(UPGRADE, n_evicted, NUMBER(n_evicted))                                                       \
    F(UPGRADE, counts, ARRAY(counts))
static const struct field TALLY_TABLE[] = {TALLY_FIELDS(FIELD)};
const struct record DEAD_LETTER_TALLY_RECORD = RECORD(DEAD_LETTER_TALLY_ROW, TALLY_TABLE);

/* ---- saving ---- */

static void put_deaths(struct saved_writer *row, const struct dead_letter *letter)
{
    const size_t list = saved_begin(row);

    for (size_t i = 0; i < letter->n_deaths; i++)
        death_put(row, letter->deaths[i]);
    saved_end(row, list);
}

/* That of a durable job has its payload on disk. */
static int save_letter(const struct dead_letter *letter, struct saver *saver)
{
    struct saved_writer row = {0};

    record_put(&row, &DEAD_LETTER_RECORD, letter);
    topic_put(&row, &letter->topic);
    put_deaths(&row, letter);
    return saved_add(saver, DEAD_LETTER_ROW, &row, letter->row == 0 ? &letter->payload : NULL);
}

static int save_letters(const struct list *letters, struct saver *saver)
{
    int r = 0;

    list_for_each (node, letters)
        if (r == 0)
            r = save_letter(list_entry(node, struct dead_letter, link), saver);
    return r;
}

int dead_letters_save(const struct dead_letters *letters, struct saver *saver)
{
    int r = save_letters(&letters->unread, saver);

    for (unsigned queue = 0; r == 0 && queue < _DEAD_N_QUEUES; queue++)
        r = save_letters(&letters->rings[queue], saver);
    return r == 0 ? record_save(saver, &DEAD_LETTER_TALLY_RECORD, letters, NULL) : r;
}

/* ---- restoring ---- */

static size_t get_deaths(struct saved_reader *row, const struct death_log *log,
                         struct death *ret[DEAD_LETTER_DEATHS_MAX])
{
    struct saved_reader list = saved_get_fields(row);
    size_t n = 0;

    while (saved_has_more(&list) && n < DEAD_LETTER_DEATHS_MAX) {
        ret[n] = death_get(&list, log);
        n += ret[n] != NULL;
    }
    return n;
}

static struct dead_letter_facts facts_of(const struct dead_letter *saved)
{
    return (struct dead_letter_facts){
        .reason = saved->reason,
        .id = saved->id,
        .row = saved->row,
        .at = saved->at,
        .restored = true,
        .sender = saved->sender,
        .recipient = saved->recipient,
        .sender_ref = saved->sender_ref,
        .recipient_ref = saved->recipient_ref,
        .topic = saved->topic,
        .message = saved->message,
        .sent_at = saved->sent_at,
        .job = saved->job,
        .options = saved->options,
        .submitter_uid = saved->submitter_uid,
        .code = saved->code,
        .text = saved->text,
        .attempts = saved->attempts,
        .cause = saved->cause,
    };
}

static int add(struct dead_letters *letters, const struct dead_letter_facts *facts,
               uint64_t size_dropped, const struct saved_reader *row)
{
    struct payload payload = PAYLOAD_NULL;
    struct dead_letter *letter;
    int r = payload_set(&payload, row->payload, row->payload_size);

    if (r < 0)
        return r;
    if (letters->last_id < facts->id)
        letters->last_id = facts->id;
    if (dead_letter_add(letters, facts, &payload) == 0)
        return -ENOMEM;
    letter = size_dropped > 0 ? dead_letter_find(letters, facts->id) : NULL;
    if (letter) {
        letter->payload_dropped = true;
        letter->payload_size = size_dropped;
    }
    return 0;
}

int dead_letter_restore_row(struct dead_letters *letters, const struct death_log *deaths,
                            struct saved_reader *row)
{
    struct death *found[DEAD_LETTER_DEATHS_MAX];
    struct dead_letter saved = {0};
    struct dead_letter_facts facts;
    int r;

    record_get(row, &DEAD_LETTER_RECORD, &saved);
    r = topic_get(row, &saved.topic);
    facts = facts_of(&saved);
    facts.deaths = found;
    facts.n_deaths = get_deaths(row, deaths, found);
    if (r < 0 || row->damaged || !dead_letter_id_valid(facts.id) || facts.at == 0)
        r = -EBADMSG;
    else if (facts.row != 0)
        r = dead_letter_inherit(letters, &facts);
    else
        r = add(letters, &facts, saved.payload_dropped ? saved.payload_size : 0, row);
    for (size_t i = 0; i < facts.n_deaths; i++)
        death_unref(found[i]);
    return r;
}

int dead_letter_tally_restore_row(struct dead_letters *letters, struct saved_reader *row)
{
    struct dead_letters saved = {0};

    record_get(row, &DEAD_LETTER_TALLY_RECORD, &saved);
    if (row->damaged)
        return -EBADMSG;
    if (letters->last_id < saved.last_id)
        letters->last_id = saved.last_id;
    letters->n_evicted += saved.n_evicted;
    for (unsigned i = 0; i < _DEAD_N_REASONS; i++)
        letters->counts[i] += saved.counts[i];
    letters->inherited_id = letters->last_id;
    return 0;
}

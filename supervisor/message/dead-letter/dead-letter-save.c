/* SPDX-License-Identifier: MIT */
#include "supervisor/message/dead-letter/dead-letter-save.h"

#include "supervisor/event/death-save.h"
#include "supervisor/message/envelope-save.h"
#include <errno.h>

/* ---- saving ---- */

static void put_options(struct saved_writer *row, const struct job_options *options)
{
    const size_t fields = saved_begin(row);

    saved_put_number(row, options->max_retries);
    saved_put_number(row, options->timeout);
    saved_put_number(row, options->backoff_min);
    saved_put_number(row, options->backoff_max);
    saved_put_number(row, options->priority);
    saved_end(row, fields);
}

static void put_deaths(struct saved_writer *row, const struct dead_letter *letter)
{
    const size_t list = saved_begin(row);

    for (size_t i = 0; i < letter->n_deaths; i++)
        death_put(row, letter->deaths[i]);
    saved_end(row, list);
}

static void put_letter(struct saved_writer *row, const struct dead_letter *letter)
{
    saved_put_number(row, letter->reason);
    saved_put_number(row, letter->id);
    saved_put_number(row, letter->at);
    saved_put_text(row, letter->sender);
    saved_put_text(row, letter->recipient);
    saved_put_number(row, letter->sender_ref);
    saved_put_number(row, letter->recipient_ref);
    topic_put(row, &letter->topic);
    saved_put_number(row, letter->message);
    saved_put_number(row, letter->sent_at);
    saved_put_text(row, letter->job);
    put_options(row, &letter->options);
    saved_put_number(row, letter->submitter_uid);
    saved_put_number(row, (uint64_t)letter->code);
    saved_put_text(row, letter->text);
    saved_put_number(row, letter->attempts);
    put_deaths(row, letter);
    saved_put_number(row, letter->payload_dropped ? letter->payload_size : 0);
    saved_put_number(row, letter->cause);
}

static int save_letter(const struct dead_letter *letter, struct saver *saver)
{
    struct saved_writer row = {0};

    put_letter(&row, letter);
    if (letter->row == 0)
        return saved_add(saver, DEAD_LETTER_ROW, &row, &letter->payload);
    saved_put_number(&row, (uint64_t)letter->row);
    return saved_add(saver, DURABLE_DEAD_LETTER_ROW, &row, NULL);
}

static int save_tally(const struct dead_letters *letters, struct saver *saver)
{
    struct saved_writer row = {0};

    saved_put_number(&row, letters->last_id);
    saved_put_number(&row, letters->n_evicted);
    for (unsigned i = 0; i < _DEAD_N_REASONS; i++)
        saved_put_number(&row, letters->counts[i]);
    return saved_add(saver, DEAD_LETTER_TALLY_ROW, &row, NULL);
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
    return r == 0 ? save_tally(letters, saver) : r;
}

/* ---- restoring ---- */

static struct job_options get_options(struct saved_reader *row)
{
    struct saved_reader fields = saved_get_fields(row);
    struct job_options options = {.max_retries = (uint32_t)saved_get_number(&fields)};

    options.timeout = saved_get_number(&fields);
    options.backoff_min = saved_get_number(&fields);
    options.backoff_max = saved_get_number(&fields);
    options.priority = (uint8_t)saved_get_number(&fields);
    return options;
}

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

static struct dead_letter_facts get_facts(struct saved_reader *row)
{
    struct dead_letter_facts facts = {
        .reason = (enum dead_letter_reason)saved_get_below(row, _DEAD_N_REASONS - 1),
        .restored = true,
    };

    facts.id = saved_get_number(row);
    facts.at = saved_get_number(row);
    facts.sender = saved_get_string(row);
    facts.recipient = saved_get_string(row);
    facts.sender_ref = saved_get_number(row);
    facts.recipient_ref = saved_get_number(row);
    if (topic_get(row, &facts.topic) < 0)
        row->damaged = true;
    facts.message = saved_get_number(row);
    facts.sent_at = saved_get_number(row);
    facts.job = saved_get_string(row);
    facts.options = get_options(row);
    facts.submitter_uid = (uid_t)saved_get_number(row);
    facts.code = (int32_t)saved_get_number(row);
    facts.text = saved_get_string(row);
    facts.attempts = (uint32_t)saved_get_number(row);
    return facts;
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

static int restore(struct dead_letters *letters, const struct death_log *deaths,
                   struct saved_reader *row, bool durable)
{
    struct dead_letter_facts facts = get_facts(row);
    struct death *found[DEAD_LETTER_DEATHS_MAX];
    uint64_t size_dropped;
    int r;

    facts.deaths = found;
    facts.n_deaths = get_deaths(row, deaths, found);
    size_dropped = saved_get_number(row);
    facts.cause = (enum attempt_cause)saved_get_below(row, _ATTEMPT_N_CAUSES - 1);
    facts.row = durable ? (int64_t)saved_get_number(row) : 0;
    if (row->damaged || !dead_letter_id_valid(facts.id) || facts.at == 0)
        r = -EBADMSG;
    else if (durable)
        r = dead_letter_inherit(letters, &facts);
    else
        r = add(letters, &facts, size_dropped, row);
    for (size_t i = 0; i < facts.n_deaths; i++)
        death_unref(found[i]);
    return r;
}

int dead_letter_restore_row(struct dead_letters *letters, const struct death_log *deaths,
                            struct saved_reader *row)
{
    return restore(letters, deaths, row, false);
}

int durable_dead_letter_restore_row(struct dead_letters *letters, const struct death_log *deaths,
                                    struct saved_reader *row)
{
    return restore(letters, deaths, row, true);
}

int dead_letter_tally_restore_row(struct dead_letters *letters, struct saved_reader *row)
{
    const uint64_t last_id = saved_get_number(row);

    if (last_id > DEAD_LETTER_ID_MAX)
        return -EBADMSG;
    if (letters->last_id < last_id)
        letters->last_id = last_id;
    letters->n_evicted += saved_get_number(row);
    for (unsigned i = 0; i < _DEAD_N_REASONS; i++)
        letters->counts[i] += saved_get_number(row);
    letters->inherited_id = letters->last_id;
    return row->damaged ? -EBADMSG : 0;
}

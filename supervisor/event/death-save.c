/* SPDX-License-Identifier: MIT */
#include "supervisor/event/death-save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROW spawn_exit
#define EXIT_FIELDS(F)                                                                             \
    F(UPGRADE, unknown, NUMBER(unknown))                                                           \
    F(UPGRADE, signalled, NUMBER(signalled))                                                       \
    F(UPGRADE, code, NUMBER(code))                                                                 \
    F(UPGRADE, core_dumped, NUMBER(core_dumped))                                                   \
    F(UPGRADE, user_sec, NUMBER(usage.ru_utime.tv_sec))                                            \
    F(UPGRADE, user_usec, NUMBER(usage.ru_utime.tv_usec))                                          \
    F(UPGRADE, system_sec, NUMBER(usage.ru_stime.tv_sec))                                          \
    F(UPGRADE, system_usec, NUMBER(usage.ru_stime.tv_usec))                                        \
    F(UPGRADE, maxrss, NUMBER(usage.ru_maxrss))
static const struct field EXIT_TABLE[] = {EXIT_FIELDS(FIELD)};
static const struct record EXIT_RECORD = RECORD("exit", EXIT_TABLE);
#undef ROW

#define ROW death_message
#define MESSAGE_FIELDS(F)                                                                          \
    F(UPGRADE, id, NUMBER(id))                                                                     \
    F(UPGRADE, sent_at, NUMBER(sent_at))                                                           \
    F(UPGRADE, in_hand, NUMBER(in_hand))                                                           \
    F(UPGRADE, sender, STRING(sender))                                                             \
    F(UPGRADE, type, STRING(type))
static const struct field MESSAGE_TABLE[] = {MESSAGE_FIELDS(FIELD)};
static const struct record MESSAGE_RECORD = RECORD("death-message", MESSAGE_TABLE);
#undef ROW

#define ROW death
#define DEATH_FIELDS(F)                                                                            \
    F(UPGRADE, serial, NUMBER(serial))                                                             \
    F(UPGRADE, worker, STRING(worker))                                                             \
    F(UPGRADE, generation, NUMBER(generation))                                                     \
    F(UPGRADE, pid, NUMBER(pid))                                                                   \
    F(UPGRADE, at, NUMBER(at))                                                                     \
    F(UPGRADE, cause, BELOW(cause, _DEATH_N_CAUSES - 1))                                           \
    F(UPGRADE, detail, STRING(detail))                                                             \
    F(UPGRADE, reason, STRING(reason))                                                             \
    F(UPGRADE, exit, SUBRECORD(exit, EXIT_RECORD))                                                 \
    F(UPGRADE, uptime, NUMBER(uptime))                                                             \
    F(UPGRADE, jobs_done, NUMBER(jobs_done))                                                       \
    F(UPGRADE, command, STRING(command))                                                           \
    F(UPGRADE, job, STRING(job))                                                                   \
    F(UPGRADE, owner_uid, NUMBER(owner_uid))                                                       \
    F(UPGRADE, submitter_uid, NUMBER(submitter_uid))                                               \
    F(UPGRADE, attempt, NUMBER(attempt))                                                           \
    F(UPGRADE, n_messages, BELOW(n_messages, DEATH_MESSAGES_MAX))                                  \
    F(UPGRADE, state_of_job, NUMBER(state_of_job))
static const struct field DEATH_TABLE[] = {DEATH_FIELDS(FIELD)};
const struct record DEATH_RECORD = RECORD(DEATH_ROW, DEATH_TABLE);

/* Returns whether there was memory for the list. */
static bool get_messages(struct saved_reader *row, struct death *death)
{
    if (death->n_messages == 0)
        return true;
    death->messages = calloc(death->n_messages, sizeof(*death->messages));
    for (size_t i = 0; death->messages && i < death->n_messages; i++)
        record_get(row, &MESSAGE_RECORD, &death->messages[i]);
    return death->messages;
}

/* Returns a copy of the bytes, NULL if there are none; `*ok` false when out of memory. */
static void *copy_bytes(struct saved_reader *row, size_t *ret_size, bool *ok)
{
    const void *bytes = saved_get_bytes(row, ret_size);
    void *copy = *ret_size > 0 ? malloc(*ret_size) : NULL;

    if (copy)
        memcpy(copy, bytes, *ret_size);
    *ok = *ok && (copy || *ret_size == 0);
    return copy;
}

static void put_report(struct saved_writer *row, const struct death *death)
{
    record_put(row, &DEATH_RECORD, death);
    for (size_t i = 0; i < death->n_messages; i++)
        record_put(row, &MESSAGE_RECORD, &death->messages[i]);
    saved_put_bytes(row, death->state, death->state_size);
    saved_put_bytes(row, death->stderr_text, death->stderr_text ? death->stderr_size : 0);
}

/* Returns whether all fields are intact, and there was memory for them. */
static bool get_fields(struct saved_reader *row, struct death *death)
{
    bool ok;

    record_get(row, &DEATH_RECORD, death);
    ok = get_messages(row, death);
    death->state = copy_bytes(row, &death->state_size, &ok);
    death->stderr_text = copy_bytes(row, &death->stderr_size, &ok);
    return ok && !row->damaged && death->state_size <= MEMORY_STATE_MAX;
}

static struct death *get_report(struct saved_reader *row)
{
    struct death *death = death_new();

    return death && get_fields(row, death) ? death : death_unref(death);
}

static struct death *find_serial(const struct death_log *log, uint64_t serial)
{
    list_for_each (node, &log->deaths) {
        struct death *death = list_entry(node, struct death, link);

        if (death->serial <= serial)
            return death->serial == serial ? death : NULL;
    }
    return NULL;
}

void death_put(struct saved_writer *row, const struct death *death)
{
    const bool in_log = death && list_linked(&death->link);
    size_t fields;

    saved_put_number(row, in_log ? death->serial : 0);
    fields = saved_begin(row);
    if (death && !in_log)
        put_report(row, death);
    saved_end(row, fields);
}

struct death *death_get(struct saved_reader *row, const struct death_log *log)
{
    const uint64_t serial = saved_get_number(row);
    struct saved_reader fields = saved_get_fields(row);
    struct death *death = serial > 0 ? find_serial(log, serial) : NULL;

    if (death)
        return death_ref(death);
    return saved_has_more(&fields) ? get_report(&fields) : NULL;
}

int death_log_save(const struct death_log *log, struct saver *saver)
{
    int r = 0;

    for (const struct list *node = log->deaths.prev; r == 0 && node != &log->deaths;
         node = node->prev) {
        struct saved_writer row = {0};

        put_report(&row, list_entry(node, struct death, link));
        r = saved_add(saver, DEATH_ROW, &row, NULL);
    }
    return r;
}

int death_log_restore(struct death_log *log, struct saved_reader *row)
{
    struct death *death = get_report(row);

    if (!death)
        return row->damaged ? -EBADMSG : -ENOMEM;
    if (death->serial > log->n_total)
        log->n_total = death->serial - 1; /* death_log_add() counts on */
    death_log_add(log, death);
    death_unref(death);
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/event/death-save.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put_exit(struct saved_writer *row, const struct spawn_exit *how)
{
    saved_put_number(row, (uint64_t)how->code);
    saved_put_number(row, how->signalled);
    saved_put_number(row, how->core_dumped);
    saved_put_number(row, how->unknown);
    saved_put_number(row, (uint64_t)how->usage.ru_utime.tv_sec);
    saved_put_number(row, (uint64_t)how->usage.ru_utime.tv_usec);
    saved_put_number(row, (uint64_t)how->usage.ru_stime.tv_sec);
    saved_put_number(row, (uint64_t)how->usage.ru_stime.tv_usec);
    saved_put_number(row, (uint64_t)how->usage.ru_maxrss);
}

static struct spawn_exit get_exit(struct saved_reader *row)
{
    struct spawn_exit how = {.code = (int)saved_get_number(row)};

    how.signalled = saved_get_below(row, 1);
    how.core_dumped = saved_get_below(row, 1);
    how.unknown = saved_get_below(row, 1);
    how.usage.ru_utime.tv_sec = (time_t)saved_get_number(row);
    how.usage.ru_utime.tv_usec = (suseconds_t)saved_get_number(row);
    how.usage.ru_stime.tv_sec = (time_t)saved_get_number(row);
    how.usage.ru_stime.tv_usec = (suseconds_t)saved_get_number(row);
    how.usage.ru_maxrss = (long)saved_get_number(row);
    return how;
}

static void put_messages(struct saved_writer *row, const struct death *death)
{
    const size_t list = saved_begin(row);

    for (size_t i = 0; i < death->n_messages; i++) {
        const struct death_message *message = &death->messages[i];
        const size_t fields = saved_begin(row);

        saved_put_number(row, message->id);
        saved_put_number(row, message->sent_at);
        saved_put_number(row, message->in_hand);
        saved_put_text(row, message->sender);
        saved_put_text(row, message->type);
        saved_end(row, fields);
    }
    saved_end(row, list);
}

static void get_message(struct saved_reader *row, struct death_message *message)
{
    message->id = saved_get_number(row);
    message->sent_at = saved_get_number(row);
    message->in_hand = saved_get_below(row, 1);
    saved_get_text(row, message->sender, sizeof(message->sender));
    saved_get_text(row, message->type, sizeof(message->type));
}

/* Returns whether the list is intact, and there was memory for it. */
static bool get_messages(struct saved_reader *row, struct death *death)
{
    struct saved_reader list = saved_get_fields(row);

    if (!saved_has_more(&list))
        return !list.damaged;
    death->messages = calloc(DEATH_MESSAGES_MAX, sizeof(*death->messages));
    if (!death->messages)
        return false;
    while (saved_has_more(&list) && death->n_messages < DEATH_MESSAGES_MAX) {
        struct saved_reader fields = saved_get_fields(&list);

        get_message(&fields, &death->messages[death->n_messages++]);
        list.damaged = list.damaged || fields.damaged;
    }
    return !list.damaged;
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

static void put_fields(struct saved_writer *row, const struct death *death)
{
    saved_put_number(row, death->serial);
    saved_put_text(row, death->worker);
    saved_put_number(row, death->generation);
    saved_put_number(row, (uint64_t)death->pid);
    saved_put_number(row, death->at);
    saved_put_number(row, death->cause);
    saved_put_text(row, death->detail);
    put_exit(row, &death->exit);
    saved_put_number(row, death->uptime);
    saved_put_number(row, death->jobs_done);
    saved_put_text(row, death->command);
    saved_put_text(row, death->job);
    saved_put_number(row, death->owner_uid);
    saved_put_number(row, death->submitter_uid);
    saved_put_number(row, death->attempt);
    put_messages(row, death);
    saved_put_number(row, death->state_of_job);
    saved_put_bytes(row, death->state, death->state_size);
    saved_put_number(row, death->stderr_size > 0 && !death->stderr_text);
    saved_put_bytes(row, death->stderr_text, death->stderr_text ? death->stderr_size : 0);
    saved_put_text(row, death->reason);
}

/* Returns whether all fields are intact, and there was memory for them. */
static bool get_fields(struct saved_reader *row, struct death *death)
{
    bool ok, lacks_output;

    death->serial = saved_get_number(row);
    saved_get_text(row, death->worker, sizeof(death->worker));
    death->generation = saved_get_number(row);
    death->pid = (pid_t)saved_get_number(row);
    death->at = saved_get_number(row);
    death->cause = (enum death_cause)saved_get_below(row, _DEATH_N_CAUSES - 1);
    saved_get_text(row, death->detail, sizeof(death->detail));
    death->exit = get_exit(row);
    death->uptime = saved_get_number(row);
    death->jobs_done = saved_get_number(row);
    saved_get_text(row, death->command, sizeof(death->command));
    saved_get_text(row, death->job, sizeof(death->job));
    death->owner_uid = (uid_t)saved_get_number(row);
    death->submitter_uid = (uid_t)saved_get_number(row);
    death->attempt = (uint32_t)saved_get_number(row);
    ok = get_messages(row, death);
    death->state_of_job = saved_get_below(row, 1);
    death->state = copy_bytes(row, &death->state_size, &ok);
    lacks_output = saved_get_below(row, 1);
    death->stderr_text = copy_bytes(row, &death->stderr_size, &ok);
    if (lacks_output)
        death->stderr_size = 1; /* as a report whose output found no memory */
    saved_get_text(row, death->reason, sizeof(death->reason));
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
        put_fields(row, death);
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

        put_fields(&row, list_entry(node, struct death, link));
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

/* SPDX-License-Identifier: MIT */
#include "supervisor/store/job-load.h"

#include "shared/base/cleanup.h"
#include "supervisor/job/checkpoint.h"
#include "supervisor/store/job-number.h"
#include "supervisor/store/pieces.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* How many pieces are read at a time: that takes about as long as a sync. */
#define PIECES_AT_ONCE 4

/* Beside JOB_ROWS_E_*. */
#define LOAD_E_ENOUGH (STORE_E_MORE - 1)

struct loaded_job *loaded_job_free(struct loaded_job *job)
{
    if (job) {
        payload_deinit(&job->payload);
        (void)checkpoint_unref(job->checkpoint);
    }
    free(job);
    return NULL;
}

/* Copies a text to `*place`, and moves `*text` to the copy. */
static void copy_text(char **place, const char **text, uint32_t size)
{
    char *copy = *place;

    if (size > 0)
        memcpy(copy, *text, size);
    copy[size] = '\0';
    *text = copy;
    *place += size + 1;
}

/* Copies the row, without a payload that was not read. Returns 0, -ENOMEM, or -errno of
 * payload_set_lasting(). */
static int loaded_job_new(struct loaded_job **ret, const struct job_row *row)
{
    const size_t texts = (size_t)row->group_size + row->key_size + row->name_size +
                         row->reason_size + row->ties_size + row->tags_size + row->traceparent_size;
    struct loaded_job *job = malloc(sizeof(*job) + texts + 7);
    char *place;
    int r = 0;

    if (!job)
        return -ENOMEM;
    list_init(&job->link);
    job->damaged = NULL;
    job->is_newer = false;
    place = job->texts;
    job->row = *row;
    copy_text(&place, &job->row.group, row->group_size);
    copy_text(&place, &job->row.key, row->key_size);
    copy_text(&place, &job->row.name, row->name_size);
    copy_text(&place, &job->row.reason, row->reason_size);
    copy_text(&place, &job->row.ties, row->ties_size);
    copy_text(&place, &job->row.tags, row->tags_size);
    copy_text(&place, &job->row.traceparent, row->traceparent_size);
    job->row.payload = NULL;
    payload_init(&job->payload);
    job->checkpoint =
        row->checkpoint ? checkpoint_new(row->checkpoint, row->checkpoint_size) : NULL;
    if (row->checkpoint && !job->checkpoint)
        r = -ENOMEM;
    if (r == 0 && row->payload)
        r = payload_set_lasting(&job->payload, row->payload, (size_t)row->payload_size);
    *ret = r == 0 ? job : loaded_job_free(job);
    return r;
}

/* As job_row_fn. */
static int copy_row(void *userdata, const struct job_row *row)
{
    struct job_load_entry *entry = userdata;

    entry->number = row->number;
    return loaded_job_new(&entry->job, row);
}

static void forget_pieces(struct job_load *load)
{
    if (load->mapped)
        (void)munmap(TAKE_PTR(load->mapped), load->entries[load->n_read].job->row.payload_size);
    load->fd = close_fd(load->fd);
    load->done = 0;
}

/* A transaction that failed is applied again. */
static void forget_rows(struct job_load *load)
{
    forget_pieces(load);
    for (size_t i = 0; i < load->n; i++)
        load->entries[i].job = loaded_job_free(load->entries[i].job);
    load->n_read = 0;
    load->bytes = 0;
}

/* Returns 0, JOB_ROWS_E_MISSING or -errno. */
static int find_number(struct database *database, const struct protocol_id *id, int64_t *ret)
{
    char name[PROTOCOL_ID_TEXT];

    *ret = job_number_of_id(database->id_key, id);
    if (*ret != 0)
        return 0;
    protocol_id_format(id, name);
    return job_rows_find(database, name, strlen(name), ret);
}

static int look_for_result(struct job_load *load, struct database *database)
{
    char id[PROTOCOL_ID_TEXT];
    const int r =
        job_rows_find_result(database, load->entries[0].number, protocol_id_format(&load->id, id));

    load->has_result = r == 0;
    return r < 0 ? r : 0;
}

static int copy_next_row(void *userdata, const struct job_row *row)
{
    struct job_load *load = userdata;
    struct job_load_entry *entry = &load->entries[load->n_read];
    int r = copy_row(entry, row);

    if (r < 0)
        return r;
    load->n_read++;
    load->bytes += entry->job->payload.size;
    return load->bytes > load->bytes_max ? LOAD_E_ENOUGH : 0;
}

/* Reads the next rows. */
static int load_next(struct job_load *load, struct database *database)
{
    const unsigned n = (unsigned)load->n;
    int r;

    if (load->kind == LOAD_TIES)
        r = job_rows_scan_ties(database, (enum row_ties)load->after_key, load->after, n,
                               copy_next_row, load);
    else if (load->kind == LOAD_JOBS || load->kind == LOAD_ALL)
        r = job_rows_scan(database, load->after, load->kind == LOAD_ALL, n, copy_next_row, load);
    else
        r = job_rows_scan_ends(database, load->kind == LOAD_RESULTS ? ROWS_ENDED : ROWS_DEAD,
                               load->after_key, load->after, n, copy_next_row, load);
    load->more = r == LOAD_E_ENOUGH || load->n_read == load->n;
    return r == LOAD_E_ENOUGH ? 0 : r;
}

/* Between the parts of its payload, the job may have changed or ended. */
static int fetch_again(struct job_load_entry *entry, struct database *database)
{
    struct payload payload;
    int r;

    payload_move(&payload, &entry->job->payload);
    entry->job = loaded_job_free(entry->job);
    r = job_rows_fetch(database, entry->number, copy_row, entry);
    if (r == 0)
        payload_move(&entry->job->payload, &payload);
    payload_deinit(&payload);
    return r;
}

/* Reads some pieces of the payload into the sealed file that it becomes. */
static int load_pieces(struct job_load *load, struct job_load_entry *entry,
                       struct database *database)
{
    const uint64_t size = entry->job->row.payload_size;
    bool missing;
    int r = 0;

    if (!load->mapped && payload_blob_new(size, &load->fd, &load->mapped) < 0)
        return -ENOMEM;
    r = pieces_read(database, entry->number, PIECES_PAYLOAD, load->mapped, size, &load->done,
                    PIECES_AT_ONCE);
    if (r == PIECES_E_MORE)
        return STORE_E_MORE;
    missing = r == PIECES_E_MISSING;
    if (r == 0 && payload_blob_seal(load->fd, TAKE_PTR(load->mapped), size) < 0)
        r = -ENOMEM;
    if (r == 0)
        payload_set_blob(&entry->job->payload, TAKE_FD(load->fd), size);
    forget_pieces(load);
    if (r >= 0)
        r = fetch_again(entry, database);
    return r == 0 && missing ? pieces_refuse(database) : r;
}

static bool lacks_payload(const struct job_load_entry *entry)
{
    return entry->job->row.payload_size > 0 && entry->job->payload.size == 0;
}

/* Returns also LOAD_E_ENOUGH: the load ends before the row. */
static int load_row(struct job_load *load, struct job_load_entry *entry, struct database *database)
{
    int r = load->mapped ? 0 : job_rows_fetch(database, entry->number, copy_row, entry);

    if (r == 0 && lacks_payload(entry))
        r = load->n_read == 0 ? load_pieces(load, entry, database) : LOAD_E_ENOUGH;
    if (r < 0 || r == LOAD_E_ENOUGH)
        entry->job = loaded_job_free(entry->job);
    return r;
}

/* Without memory for a row, those before it are kept. */
static int load_apply(struct store_task *task, struct database *database)
{
    struct job_load *load = job_load_of(task);
    int r = 0;

    if (!load->mapped)
        forget_rows(load);
    if (load->kind >= LOAD_JOBS)
        return load_next(load, database);
    if (load->kind == LOAD_ID && !load->mapped)
        r = find_number(database, &load->id, &load->entries[0].number);
    if (r < 0)
        return r;
    for (; r == 0 && load->n_read < load->n && load->bytes <= load->bytes_max; load->n_read++) {
        struct job_load_entry *entry = &load->entries[load->n_read];

        r = load_row(load, entry, database);
        if (r == LOAD_E_ENOUGH || (r == -ENOMEM && load->kind != LOAD_ID))
            return 0;
        if (r < 0 || r == STORE_E_MORE)
            return r;
        if (r == 0)
            load->bytes += entry->job->payload.size;
        r = 0;
    }
    return load->kind == LOAD_ID && !load->entries[0].job ? look_for_result(load, database) : 0;
}

struct job_load *job_load_new(size_t n)
{
    struct job_load *load = calloc(1, sizeof(*load) + n * sizeof(load->entries[0]));

    if (!load)
        return NULL;
    load->task.apply = load_apply;
    list_init(&load->task.link);
    load->bytes_max = UINT64_MAX;
    load->fd = -1;
    load->n = n;
    return load;
}

void job_load_leave(struct job_load *load, struct store *store)
{
    if (store_cancel(store, &load->task))
        (void)job_load_free(load);
    else
        load->owner = NULL;
}

struct job_load *job_load_free(struct job_load *load)
{
    if (load)
        forget_rows(load);
    free(load);
    return NULL;
}

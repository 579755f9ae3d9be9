/* SPDX-License-Identifier: MIT */

/* Writes what is noted of a durable job. Runs in the storage thread. */

#include "supervisor/job/checkpoint.h"
#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/store/pieces.h"
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

/* How large a result or a payload may be to count as part of its row. */
#define BARE_MAX 256

/* From which size on it is checked whether the disk has room for them. */
#define CHECKED_MIN (UINT64_C(512) << 10)

/* ---- large bytes ---- */

static enum piece_kind kind_of(const struct durable_job *durable)
{
    return durable->given & DURABLE_END && !(durable->keeps & DURABLE_LETTER) ? PIECES_RESULT
                                                                              : PIECES_PAYLOAD;
}

/* Returns the bytes that are written with this change; NULL = none. Those of a dead letter were
 * written with the row of the job, unless it has none. */
static const struct payload *bytes_of(const struct durable_job *durable)
{
    const struct job *job = durable->record.job;
    const bool answered = durable->end == JOB_SUCCEEDED || durable->end == JOB_REJECTED;

    if (!(durable->given & DURABLE_END))
        return durable->given & DURABLE_ADD ? &durable->payload : NULL;
    if (durable->unkept != 0)
        return NULL;
    if (durable->keeps & DURABLE_LETTER)
        return &job->payload;
    return durable->keeps & DURABLE_BYTES && answered ? &job->result : NULL;
}

/* Whether enough of the disk stays free when both the log and the database have grown by what is
 * still to be written. A result must leave as much free as it takes: the jobs of other groups need
 * that. A small job takes the room of the dead letter that it replaces. */
static bool has_room(struct database *database, const struct durable_job *durable,
                     const struct payload *bytes)
{
    const enum piece_kind kind = kind_of(durable);
    const uint64_t left = pieces_left(database, durable->row.number, kind, bytes);
    const uint64_t spare = RESERVE_SIZE + (kind == PIECES_RESULT ? bytes->size : 0);
    struct statvfs disk;

    if (durable->replaces != 0 && !in_pieces(bytes->size, bytes->fd))
        return true;
    if (database->bare && left > BARE_MAX)
        return false;
    return left < CHECKED_MIN || statvfs(database->path, &disk) < 0 ||
           (uint64_t)disk.f_bavail * disk.f_frsize >= 2 * left + spare;
}

/* Writes the next piece of what is too large for its row. Bytes that cannot be written are given
 * up at the end of a job, which must be written. Returns 0, PIECES_E_MORE or -errno. */
static int write_bytes(struct database *database, struct durable_job *durable)
{
    const struct payload *bytes = bytes_of(durable);
    int r;

    if (!bytes)
        return 0;
    r = has_room(database, durable, bytes)
            ? pieces_write(database, durable->row.number, kind_of(durable), bytes)
            : -ENOSPC;
    if (r >= 0 || database->error != 0 || !(durable->given & DURABLE_END))
        return r;
    durable->unkept = r;
    return 0;
}

/* ---- rows ---- */

static int write_result(struct database *database, const struct durable_job *durable)
{
    struct job_row row = durable->row;
    char reason[JOB_UNKEPT_MAX];

    job_end_to_row(&row, durable->record.job, durable->end);
    if (row.payload_size > 0 && (!(durable->keeps & DURABLE_BYTES) || durable->unkept != 0)) {
        row.reason = job_unkept_reason(durable->record.job, durable->unkept, reason);
        row.reason_size = (uint32_t)strlen(reason);
        row.payload_dropped = true;
    }
    return job_rows_put(database, ROWS_ENDED, &row);
}

static int write_letter(struct database *database, const struct durable_job *durable)
{
    const struct job *job = durable->record.job;
    struct job_row row = durable->row;

    job_end_to_row(&row, job, durable->end);
    row.letter = durable->letter;
    row.payload = payload_data(&job->payload);
    row.payload_fd = job->payload.fd;
    row.payload_size = job->payload.size;
    row.payload_dropped = durable->unkept != 0;
    return job_rows_put(database, ROWS_DEAD, &row);
}

/* Removes the row of the job; a dead letter takes over the payload. There is no such row if the job
 * is added by this very task. */
static int remove_job(struct database *database, const struct durable_job *durable)
{
    const int64_t number = durable->row.number;

    if (durable->given & DURABLE_ADD)
        return 0;
    return durable->keeps & DURABLE_LETTER ? job_rows_take(database, number)
                                           : job_rows_remove(database, 1u << ROWS_JOB, number);
}

/* Writes the end for jobs that wait for this one, and counts it in its batch. */
static int write_ties(struct database *database, const struct durable_job *durable)
{
    const struct job_row *row = &durable->row;
    int r = 0;

    if (durable->keeps & DURABLE_FATE)
        r = job_rows_put_fate(database, row->number, durable->end);
    if (r == 0 && durable->keeps & DURABLE_COUNT)
        r = job_rows_count_member(database, row->member_of, durable->end == JOB_SUCCEEDED);
    return r;
}

static int write_end(struct database *database, const struct durable_job *durable)
{
    int r = remove_job(database, durable);

    if (r == 0)
        r = write_ties(database, durable);

    if (r == 0 && durable->keeps & DURABLE_RESULT)
        r = write_result(database, durable);
    if (r == 0 && durable->keeps & DURABLE_LETTER)
        r = write_letter(database, durable);
    return r;
}

/* Like write_end() or job_rows_add(), but for a job that replaces a dead letter: removes the letter
 * in the same transaction, so that one of them is always on disk. The row of the job exists already
 * if an earlier try, which seemed to fail, has reached the disk. */
static int write_replacement(struct database *database, const struct durable_job *durable)
{
    int r = job_rows_take(database, durable->row.number);

    if (r == 0)
        r = durable->given & DURABLE_END ? write_end(database, durable)
                                         : job_rows_add(database, &durable->row);
    return r == 0 ? job_rows_remove(database, 1u << ROWS_DEAD, durable->replaces) : r;
}

static int write_change(struct database *database, struct durable_job *durable)
{
    int r = 0;

    if (durable->given & DURABLE_ADD && durable->replaces != 0)
        return write_replacement(database, durable);
    if (durable->given & DURABLE_END)
        r = write_end(database, durable);
    else if (durable->given & DURABLE_ADD)
        r = job_rows_add(database, &durable->row);
    if (r == 0 && durable->given & DURABLE_CLOSE)
        r = job_rows_close_batch(database, durable->row.number);
    if (r == 0 && durable->given & DURABLE_ADD && durable->cancels != 0)
        r = job_rows_cancel(database, durable->cancels);
    if (durable->given & (DURABLE_ADD | DURABLE_END))
        return r;
    if (durable->given & DURABLE_MOVE)
        r = job_rows_move(database, &durable->row);
    return r < 0 ? r : job_rows_update(database, &durable->row);
}

static int write_checkpoint(struct database *database, const struct durable_job *durable)
{
    const struct checkpoint *checkpoint = durable->checkpoint;

    if (!checkpoint)
        return 0;
    return job_rows_put_checkpoint(database, durable->row.number, checkpoint->bytes,
                                   checkpoint->size);
}

int durable_write(struct store_task *task, struct database *database)
{
    struct durable_job *durable = list_entry(task, struct durable_job, task);
    int r = 0;

    if (durable->given & DURABLE_ADD && durable->row.name_size > 0)
        r = job_rows_check_name(database, &durable->row);
    if (r != 0)
        return r;
    r = write_bytes(database, durable);
    if (r == PIECES_E_MORE)
        return STORE_E_MORE;
    if (r == 0)
        r = write_change(database, durable);
    if (r == 0 && durable->given & DURABLE_ADD && durable->joined)
        r = durable->joined->apply(durable->joined, database);
    return r == 0 ? write_checkpoint(database, durable) : r;
}

/* SPDX-License-Identifier: MIT */

/* Writes what is noted of a durable job. Runs in the storage thread. */

#include "supervisor/store/durable-job.h"
#include "supervisor/store/job-rows.h"
#include "supervisor/store/job-to-row.h"
#include "supervisor/store/pieces.h"
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

/* How large a result or a payload may be to count as part of its row. */
#define BARE_MAX 256

/* How large they are before it is checked whether the disk has room for them. */
#define CHECKED_MIN (UINT64_C(512) << 10)

/* ---- large bytes ---- */

static bool has_result(const struct durable_job *durable)
{
    return (durable->keeps & DURABLE_BYTES) != 0 &&
           (durable->end == JOB_SUCCEEDED || durable->end == JOB_REJECTED);
}

/* Whether `spare` bytes stay free on the disk when both the log and the database have grown by what
 * is still to be written. If the disk has room for nothing but the ends of jobs, that is at most
 * BARE_MAX. */
static bool has_room(struct database *database, const struct durable_job *durable,
                     enum piece_kind kind, uint64_t size, uint64_t spare)
{
    const uint64_t left = pieces_left(database, durable->row.number, kind, size);
    struct statvfs disk;

    if (database->bare && left > BARE_MAX)
        return false;
    return left < CHECKED_MIN || statvfs(database->path, &disk) < 0 ||
           (uint64_t)disk.f_bavail * disk.f_frsize >= 2 * left + spare;
}

/* Drops large bytes for which the disk has no room: the end of a job must be written. A result must
 * leave as much of the disk free as it takes: the jobs of other groups need that. */
static void strip(struct database *database, struct durable_job *durable)
{
    const uint64_t result = durable->record.job->result.size;
    const uint64_t payload = durable->record.job->payload.size;

    if (has_result(durable) &&
        !has_room(database, durable, PIECES_RESULT, result, result + RESERVE_SIZE))
        durable->unkept = -ENOSPC;
    if (durable->keeps & DURABLE_LETTER &&
        !has_room(database, durable, PIECES_PAYLOAD, payload, RESERVE_SIZE))
        durable->strips = true;
}

/* Whether the disk has room for a job that is added. One that replaces a dead letter takes the
 * room of that, but its pieces are written while those of the dead letter are still there. */
static bool may_add(struct database *database, const struct durable_job *durable)
{
    const uint64_t size = durable->payload.size;

    return (durable->replaces != 0 && !in_pieces(size)) ||
           has_room(database, durable, PIECES_PAYLOAD, size, RESERVE_SIZE);
}

/* Writes the next piece of the result. If only the bytes cannot be written, gives them up. */
static int write_result_piece(struct database *database, struct durable_job *durable)
{
    int r = 0;

    if (has_result(durable) && durable->unkept == 0)
        r = pieces_write(database, durable->row.number, PIECES_RESULT,
                         &durable->record.job->result);
    if (r < 0 && database->error == 0) {
        durable->unkept = r;
        r = 0;
    }
    return r;
}

/* Like write_result_piece(), but for the payload of the dead letter. Most such payloads were
 * written with the row of the job. */
static int write_letter_piece(struct database *database, struct durable_job *durable)
{
    int r = 0;

    if (durable->keeps & DURABLE_LETTER && !durable->strips)
        r = pieces_write(database, durable->row.number, PIECES_PAYLOAD,
                         &durable->record.job->payload);
    if (r < 0 && database->error == 0) {
        durable->strips = true;
        r = 0;
    }
    return r;
}

/* Writes the next piece of a payload or result that is too large for its row. Returns 0,
 * PIECES_E_MORE or -errno. */
static int write_piece(struct database *database, struct durable_job *durable)
{
    int r;

    if (!(durable->given & DURABLE_END))
        return durable->given & DURABLE_ADD
                   ? pieces_write(database, durable->row.number, PIECES_PAYLOAD, &durable->payload)
                   : 0;
    r = write_result_piece(database, durable);
    return r == 0 ? write_letter_piece(database, durable) : r;
}

/* ---- rows ---- */

static int put_result(struct database *database, const struct durable_job *durable)
{
    struct job_row row = durable->row;
    char reason[JOB_UNKEPT_MAX];

    job_end_to_row(&row, durable->record.job, durable->end);
    if (row.payload_size > 0 && (!(durable->keeps & DURABLE_BYTES) || durable->unkept != 0)) {
        row.reason = job_unkept_reason(durable->record.job, durable->unkept, reason);
        row.reason_size = (uint32_t)strlen(reason);
        row.payload = "";
        row.payload_fd = -1;
        row.payload_size = 0;
    }
    return job_rows_put(database, ROWS_ENDED, &row);
}

/* Writes the result's row. If only the result's bytes cannot be written, the row is written without
 * them. */
static int write_result(struct database *database, struct durable_job *durable)
{
    int r = put_result(database, durable);

    if (r == 0 || database->error != 0)
        return r;
    durable->unkept = r;
    return put_result(database, durable);
}

static int put_letter(struct database *database, const struct durable_job *durable)
{
    const struct job *job = durable->record.job;
    struct job_row row = durable->row;

    job_end_to_row(&row, job, durable->end);
    row.letter = durable->letter;
    row.payload = payload_data(&job->payload);
    row.payload_fd = job->payload.fd;
    row.payload_size = job->payload.size;
    row.payload_dropped = durable->strips;
    return job_rows_put(database, ROWS_DEAD, &row);
}

/* Like write_result(), but writes the dead letter and its payload. */
static int write_letter(struct database *database, struct durable_job *durable)
{
    int r = put_letter(database, durable);

    if (r == 0 || database->error != 0)
        return r;
    durable->strips = true;
    return put_letter(database, durable);
}

/* There is no row of the job to remove if it is added by this very task, and never was before. */
static int write_end(struct database *database, struct durable_job *durable)
{
    const bool fresh = (durable->given & DURABLE_ADD) != 0;
    int r = fresh ? 0 : job_rows_remove(database, 1u << ROWS_JOB, durable->row.number);

    if (r == 0 && durable->keeps & DURABLE_RESULT)
        r = write_result(database, durable);
    if (r == 0 && durable->keeps & DURABLE_LETTER)
        r = write_letter(database, durable);
    return r;
}

/* Removes the dead letter that the job replaces, in the transaction that adds the job: one of them
 * is always on disk. The row of the job is there if an earlier try has been written after all. */
static int write_replacement(struct database *database, const struct durable_job *durable)
{
    int r;

    if (durable->replaces == 0)
        return 0;
    r = job_rows_remove(database, 1u << ROWS_DEAD, durable->replaces);
    return r == 0 ? job_rows_remove(database, 1u << ROWS_JOB, durable->row.number) : r;
}

static int write_change(struct database *database, struct durable_job *durable)
{
    int r = durable->given & DURABLE_ADD ? write_replacement(database, durable) : 0;

    if (durable->given == (DURABLE_ADD | DURABLE_END) && r == 0 && durable->row.name_size > 0)
        r = job_rows_check_name(database, &durable->row);
    if (r != 0)
        return r;
    if (durable->given & DURABLE_END)
        return write_end(database, durable);
    if (durable->given & DURABLE_ADD)
        return job_rows_add(database, &durable->row);
    if (durable->given & DURABLE_MOVE)
        r = job_rows_move(database, &durable->row);
    return r < 0 ? r : job_rows_update(database, &durable->row);
}

int durable_write(struct store_task *task, struct database *database)
{
    struct durable_job *durable = list_entry(task, struct durable_job, task);
    int r;

    if (durable->given & DURABLE_END)
        strip(database, durable);
    else if (durable->given & DURABLE_ADD && !may_add(database, durable))
        return -ENOSPC;
    r = write_piece(database, durable);
    if (r == PIECES_E_MORE)
        return STORE_E_MORE;
    return r == 0 ? write_change(database, durable) : r;
}

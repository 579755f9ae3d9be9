/* SPDX-License-Identifier: MIT */

/* What monitoring shows of the store. */

#include "supervisor/store/store-private.h"
#include "supervisor/succession/record.h"
#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* How old the sizes may be when there is a commit. */
#define SIZES_USEC USEC_PER_SEC

static void measure_sizes(const struct store *store, struct store_stats *stats)
{
    struct statvfs disk;
    struct stat file;

    if (stat(store->path, &file) == 0)
        stats->bytes = (uint64_t)file.st_size + (uint64_t)store->worker.database.log_size;
    if (statvfs(store->path, &disk) == 0)
        stats->free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
}

void store_measure(struct store *store, bool now)
{
    struct store_stats sizes = {0};
    const usec_t time = clock_now();

    if (!now && time < usec_add(store->worker.measured_at, SIZES_USEC))
        return;
    store->worker.measured_at = time;
    measure_sizes(store, &sizes);
    pthread_mutex_lock(&store->mutex);
    store->stats.bytes = sizes.bytes;
    store->stats.free_bytes = sizes.free_bytes;
    pthread_mutex_unlock(&store->mutex);
}

void store_note_commit(struct store *store, usec_t took)
{
    pthread_mutex_lock(&store->mutex);
    store->stats.n_commits++;
    histogram_add(&store->stats.sync, took);
    pthread_mutex_unlock(&store->mutex);
}

struct store_stats store_stats(struct store *store)
{
    struct store_stats stats;

    pthread_mutex_lock(&store->mutex);
    stats = store->stats;
    pthread_mutex_unlock(&store->mutex);
    stats.n_waiting = store->n_waiting;
    return stats;
}

#define ROW store_stats
#define STATS_FIELDS(F)                                                                            \
    F(UPGRADE, n_commits, NUMBER(n_commits))                                                       \
    F(UPGRADE, sync, SUBRECORD(sync, HISTOGRAM_RECORD))
const struct record STORE_STATS_RECORD = RECORD(STORE_TALLY_ROW, STATS_FIELDS);

void store_tally_save(struct store *store, struct saver *saver)
{
    struct store_stats stats;

    if (!store)
        return;
    stats = store_stats(store);
    record_save(saver, &STORE_STATS_RECORD, &stats, NULL);
}

/* Its thread may have written since. */
int store_tally_restore_row(struct store *store, struct saved_reader *row)
{
    struct store_stats before = {0}, *stats;

    record_get(row, &STORE_STATS_RECORD, &before);
    if (row->damaged)
        return -EBADMSG;
    if (!store)
        return 0;
    stats = &store->stats;
    pthread_mutex_lock(&store->mutex);
    stats->n_commits += before.n_commits;
    stats->sync.sum += before.sync.sum;
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
        stats->sync.counts[i] += before.sync.counts[i];
    pthread_mutex_unlock(&store->mutex);
    return 0;
}

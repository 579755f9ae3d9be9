/* SPDX-License-Identifier: MIT */
#include "supervisor/job/job-stream.h"

#include "shared/base/fault.h"
#include "supervisor/job/job.h"
#include "supervisor/succession/record.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define item_of(node) list_entry(node, struct job_item, link)

void job_streams_init(struct job_streams *set)
{
    shares_init(&set->shares);
}

void job_streams_deinit(struct job_streams *set)
{
    shares_deinit(&set->shares);
}

static struct share *share_of(struct job_streams *set, const struct job *job)
{
    char uid[12];
    const int size = snprintf(uid, sizeof(uid), "%u", (unsigned)job->submitter_uid);

    return share_get(&set->shares, uid, (size_t)size);
}

/* Returns false when out of memory. */
static bool join(const struct job *job, struct job_stream *stream, struct job_streams *set)
{
    stream->share = share_of(set, job);
    if (!stream->share)
        return false;
    share_add(stream->share, 0, stream->bytes);
    if (!list_empty(&stream->items))
        list_push_back(&stream->share->entries[0], &stream->link);
    return true;
}

struct job_stream *job_stream_of(struct job *job, struct job_streams *set)
{
    struct job_stream *stream = job_own_stream(job);

    if (stream)
        return stream->share || join(job, stream, set) ? stream : NULL;
    if (fault_inject("job-stream") < 0 || job_make_rare(job) < 0)
        return NULL;
    stream = calloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    list_init(&stream->items);
    list_init(&stream->readers);
    list_init(&stream->link);
    job->rare->stream = stream;
    return join(job, stream, set) ? stream : NULL;
}

static size_t size_of(const struct job_item *item)
{
    return sizeof(*item) + item->size;
}

static void drop_oldest(struct job_stream *stream)
{
    struct job_item *item = item_of(list_first(&stream->items));

    list_unlink(&item->link);
    stream->bytes -= size_of(item);
    if (stream->share)
        share_sub(stream->share, 0, size_of(item));
    stream->dropped++;
    free(item);
    if (list_empty(&stream->items))
        list_unlink(&stream->link);
}

static void make_room(struct shares *shares)
{
    while (shares->used[0] > JOB_STREAMS_MAX)
        drop_oldest(
            list_first_entry(&share_victim(shares, 0)->entries[0], struct job_stream, link));
}

static void tell_readers(const struct job_stream *stream)
{
    list_for_each_entry (reader, &stream->readers, struct job_reader, link)
        reader->news(reader);
}

int job_stream_add(struct job *job, struct job_streams *set, usec_t at, const void *data,
                   size_t size)
{
    struct job_stream *stream = job_stream_of(job, set);
    struct job_item *item;

    if (!stream)
        return -ENOMEM;
    item = malloc(sizeof(*item) + size);
    if (!item) {
        stream->dropped++;
        return -ENOMEM;
    }
    stream->last = at > stream->last ? at : stream->last + 1;
    *item = (struct job_item){.at = stream->last, .size = (uint32_t)size};
    memcpy(item->bytes, data, size);
    list_push_back(&stream->items, &item->link);
    stream->bytes += size_of(item);
    share_add(stream->share, 0, size_of(item));
    list_unlink(&stream->link);
    list_push_back(&stream->share->entries[0], &stream->link);
    while (stream->bytes > JOB_STREAM_MAX)
        drop_oldest(stream);
    make_room(stream->share->shares);
    tell_readers(stream);
    return 0;
}

/* Searches from the end, as readers have had most items already. */
const struct job_item *job_stream_after(const struct job *job, usec_t after)
{
    const struct job_stream *stream = job_own_stream(job);
    const struct list *node;

    if (!stream)
        return NULL;
    for (node = stream->items.prev; node != &stream->items; node = node->prev)
        if (item_of(node)->at <= after)
            break;
    return node->next != &stream->items ? item_of(node->next) : NULL;
}

const struct job_item *job_stream_next(const struct job *job, const struct job_item *item)
{
    const struct list *next = item->link.next;

    return next != &job_own_stream(job)->items ? item_of(next) : NULL;
}

void job_stream_move(struct job *job, struct job_streams *set)
{
    struct job_stream *stream = job_own_stream(job);

    if (!stream)
        return;
    job_stream_leave(job);
    if (join(job, stream, set))
        make_room(&set->shares);
}

void job_stream_leave(struct job *job)
{
    struct job_stream *stream = job_own_stream(job);

    if (!stream || !stream->share)
        return;
    share_sub(stream->share, 0, stream->bytes);
    list_unlink(&stream->link);
    stream->share = share_unref(stream->share);
}

void job_stream_free(struct job *job)
{
    struct job_stream *stream = job_own_stream(job);

    if (!stream)
        return;
    while (!list_empty(&stream->items))
        drop_oldest(stream);
    (void)share_unref(stream->share);
    free(stream);
    job->rare->stream = NULL;
}

/* ---- upgrade ---- */

#define ROW saved_item
#define FIELDS(F)                                                                                  \
    F(UPGRADE, handle, NUMBER(handle))                                                             \
    F(UPGRADE, at, NUMBER(at))                                                                     \
    F(UPGRADE, dropped, NUMBER(dropped))                                                           \
    F(UPGRADE, data, TEXT(data))
const struct record SAVED_ITEM_RECORD = RECORD("job-item", FIELDS);

void job_stream_save(const struct job *job, struct saver *saver)
{
    if (!job_own_stream(job))
        return;
    list_for_each_entry (item, &job_own_stream(job)->items, struct job_item, link) {
        const struct saved_item saved = {
            .handle = job->handle,
            .at = item->at,
            .dropped = job_own_stream(job)->dropped,
            .data = item->bytes,
            .data_size = item->size,
        };

        record_save(saver, &SAVED_ITEM_RECORD, &saved, NULL);
    }
}

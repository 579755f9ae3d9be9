/* SPDX-License-Identifier: MIT */
#include "supervisor/job/checkpoint.h"

#include "shared/base/fault.h"
#include "supervisor/job/job.h"
#include "supervisor/succession/record.h"
#include <stdlib.h>
#include <string.h>

struct checkpoint *checkpoint_new(const void *data, size_t size)
{
    struct checkpoint *checkpoint =
        fault_inject("checkpoint") < 0 ? NULL : malloc(sizeof(*checkpoint) + size);

    if (!checkpoint)
        return NULL;
    *checkpoint = (struct checkpoint){.references = 1, .size = (uint32_t)size};
    memcpy(checkpoint->bytes, data, size);
    return checkpoint;
}

struct checkpoint *checkpoint_ref(struct checkpoint *checkpoint)
{
    checkpoint->references++;
    return checkpoint;
}

struct checkpoint *checkpoint_unref(struct checkpoint *checkpoint)
{
    if (checkpoint && --checkpoint->references == 0)
        free(checkpoint);
    return NULL;
}

#define ROW saved_checkpoint
#define FIELDS(F)                                                                                  \
    F(UPGRADE, handle, NUMBER(handle))                                                             \
    F(UPGRADE, data, TEXT(data))
const struct record SAVED_CHECKPOINT_RECORD = RECORD("checkpoint", FIELDS);

void checkpoint_save(const struct job *job, struct saver *saver)
{
    const struct checkpoint *checkpoint = job_checkpoint(job);
    struct saved_checkpoint saved = {.handle = job->handle};

    if (!checkpoint)
        return;
    saved.data = checkpoint->bytes;
    saved.data_size = checkpoint->size;
    record_save(saver, &SAVED_CHECKPOINT_RECORD, &saved, NULL);
}

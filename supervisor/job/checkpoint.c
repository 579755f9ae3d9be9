/* SPDX-License-Identifier: MIT */
#include "supervisor/job/checkpoint.h"

#include "shared/base/fault.h"
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

/* SPDX-License-Identifier: MIT */
#include "worker/base/carrier.h"

#include "shared/base/cleanup.h"
#include "worker/base/blob.h"

/* The socket that is full of descriptors is looked at so often even if nothing tells of room. */
#define FULL_SLICE_MS 100

int carrier_send_blob(const struct carrier *carrier, const void *data, size_t size,
                      struct payload_wire *ret)
{
    _cleanup_(blob_deinit)
    struct blob blob = BLOB_NULL;
    int r;

    r = blob_copy(&blob, data, size);
    if (r < 0)
        return r;
    while ((r = blob_send(&blob, carrier->control, *carrier->blobs_sent + 1)) == -EAGAIN) {
        /* It may wait for us to take its answers before it takes our descriptors. */
        r = carrier->class->pump(carrier->owner, 0);
        if (r < 0)
            return r;
        (void)blob_sendable(carrier->control, FULL_SLICE_MS);
    }
    if (r < 0)
        return r;
    (*carrier->blobs_sent)++;
    *ret = (struct payload_wire){
        .form = PAYLOAD_BLOB, .size = blob.size, .serial = *carrier->blobs_sent};
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "worker/nats/discard.h"

#define DISCARD_MANY  (DISCARD_MAX / 4)
#define DISCARD_BYTES ((size_t)4 << 20)

void discard_empty(struct discard *discard)
{
    for (unsigned i = 0; i < discard->n; i++)
        natsMsg_Destroy(discard->messages[i]);
    discard->n = 0;
    discard->bytes = 0;
}

void discard_put(struct discard *discard, natsMsg *message)
{
    if (discard->n == DISCARD_MAX || discard->bytes >= DISCARD_BYTES)
        discard_empty(discard);
    discard->messages[discard->n++] = message;
    if (message)
        discard->bytes += (size_t)natsMsg_GetDataLength(message);
}

void discard_serve(struct discard *discard, bool idle)
{
    if (idle || discard->n >= DISCARD_MANY)
        discard_empty(discard);
}

/* SPDX-License-Identifier: MIT */
/* Payloads of records: copied from the ring, or passed as descriptors over the control socket. */
#include "shared/base/cleanup.h"
#include "supervisor/channel/endpoint-private.h"
#include "supervisor/loop/closer.h"
#include "supervisor/loop/toll.h"
#include <errno.h>

/* Copying this many bytes takes some tens of microseconds. */
#define COPIED_MAX ((uint64_t)256 << 10)

/* A descriptor that was lost may still be in the socket, with an old serial. Such descriptors are
 * dropped. */
static int endpoint_receive(struct endpoint *endpoint, uint64_t serial, int *ret_fd)
{
    uint64_t received;
    int r;

    do {
        r = taker_receive(&endpoint->receipt, endpoint->control, endpoint_owner(endpoint),
                          &received, ret_fd);
        if (r == 0 && received != serial) {
            closer_close(*ret_fd);
            r = -EPROTO;
        }
    } while (r == -EPROTO && endpoint->blobs_left > 0 && endpoint->blobs_left--);
    endpoint->blobs_left += r == -ENOMEM || r == -EMFILE;
    return r == TAKER_E_WAIT ? ENDPOINT_E_BLOB : r;
}

/* Keeps the descriptor; beyond the sender's share of descriptors it keeps a copy of the bytes, if
 * they are few enough. */
static int keep_blob(struct endpoint *endpoint, int fd, uint64_t size, struct payload *ret)
{
    struct held_blob *blob;
    int r;

    if (!endpoint->blobs) {
        payload_set_blob(ret, fd, size);
        return 0;
    }
    r = held_blob_new(&blob, endpoint->blobs, fd, size, size > COPIED_MAX);
    if (r == 0) {
        payload_set_shared(ret, blob);
        return 0;
    }
    if (r < 0 || size > COPIED_MAX) {
        closer_close(fd);
        return r < 0 ? r : -EMFILE;
    }
    r = payload_read(ret, fd, (size_t)size);
    (void)close_fd(fd);
    return r;
}

bool endpoint_is_next(struct endpoint *endpoint, const struct payload_wire *wire)
{
    return wire->form == PAYLOAD_INLINE || endpoint_find_blob(endpoint, wire->serial) < 0 ||
           wire->serial == endpoint->blobs_received + 1;
}

int endpoint_take(struct endpoint *endpoint, const struct payload_wire *wire, struct payload *ret)
{
    int fd, r;

    if (wire->form == PAYLOAD_INLINE)
        return payload_set(ret, wire->data, (size_t)wire->size);
    r = endpoint_find_blob(endpoint, wire->serial);
    if (r < 0)
        return r;
    if (wire->serial != endpoint->blobs_received + 1)
        return -EPROTO;
    r = endpoint_receive(endpoint, wire->serial, &fd);
    if (r != 0 && !endpoint_is_loss(r))
        return r;
    endpoint->blobs_received++;
    if (r < 0)
        return r;
    r = payload_blob_check(fd, wire->size);
    if (r < 0) {
        closer_close(fd);
        return r;
    }
    return keep_blob(endpoint, fd, wire->size, ret);
}

static int endpoint_send_blob(struct endpoint *endpoint, int fd, uint64_t size,
                              struct payload_wire *ret)
{
    const usec_t now = loop_now(endpoint->loop);
    const struct toll toll = toll_begin(now);
    int r = endpoint_hands_over(endpoint)
                ? -EAGAIN
                : payload_send_fd(endpoint->control, fd, endpoint->blobs_sent + 1);

    if (toll_end(toll, now, endpoint_owner(endpoint)) == TOLL_BARRED) {
        endpoint->costly = !endpoint->dead;
        endpoint_break(endpoint, "lets too much wait at its control socket");
        return -EPROTO;
    }
    if (r == -EAGAIN)
        return endpoint_await_socket(endpoint);
    if (r == -EPIPE || r == -ECONNRESET || r == -ENOTCONN) {
        endpoint->gone = !endpoint->dead;
        endpoint_break(endpoint, "closed its control socket");
        return -EPROTO;
    }
    if (r < 0)
        return r;
    endpoint->blobs_sent++;
    *ret =
        (struct payload_wire){.form = PAYLOAD_BLOB, .size = size, .serial = endpoint->blobs_sent};
    return 0;
}

static int endpoint_send_copy(struct endpoint *endpoint, const struct payload *payload,
                              struct payload_wire *ret)
{
    _cleanup_close_ int made = -1;
    int r = payload_blob_copy(payload_data(payload), (size_t)payload->size, &made);

    return r < 0 ? r : endpoint_send_blob(endpoint, made, payload->size, ret);
}

int endpoint_give(struct endpoint *endpoint, const struct payload *payload,
                  struct payload_wire *ret)
{
    if (payload->fd >= 0)
        return endpoint_send_blob(endpoint, payload->fd, payload->size, ret);
    if (payload->size > endpoint->channel.mine.header->inline_max)
        return endpoint_send_copy(endpoint, payload, ret);
    *ret = (struct payload_wire){
        .form = PAYLOAD_INLINE, .data = payload_data(payload), .size = payload->size};
    return 0;
}

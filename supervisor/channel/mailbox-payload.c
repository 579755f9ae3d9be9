/* SPDX-License-Identifier: MIT */
#include "shared/cleanup.h"
#include "supervisor/channel/mailbox-private.h"
#include "supervisor/loop/closer.h"
#include <errno.h>

/* Copying so much takes some tens of microseconds. */
#define COPIED_MAX ((uint64_t)256 << 10)

/*
 * What could not be received for want of memory may still lie in the socket, with the serial of a
 * record that is over: it goes, as often as that has happened.
 */
static int mailbox_receive(struct mailbox *mailbox, uint64_t serial, int *ret_fd)
{
    int r;

    do
        r = payload_receive_fd(mailbox->control, serial, closer_close, ret_fd);
    while (r == -EPROTO && mailbox->blobs_left > 0 && mailbox->blobs_left--);
    mailbox->blobs_left += r == -ENOMEM;
    return r;
}

/* As a descriptor; beyond the sender's share of those the bytes, if they are not too many. */
static int keep_blob(struct mailbox *mailbox, int fd, uint64_t size, struct parcel *ret)
{
    struct held_blob *blob;
    int r;

    if (!mailbox->blobs) {
        parcel_set_blob(ret, fd, size);
        return 0;
    }
    r = held_blob_new(&blob, mailbox->blobs, fd, size, size > COPIED_MAX);
    if (r == 0) {
        parcel_set_shared(ret, blob);
        return 0;
    }
    if (r < 0 || size > COPIED_MAX) {
        closer_close(fd);
        return r < 0 ? r : -EMFILE;
    }
    r = parcel_read(ret, fd, (size_t)size);
    (void)close_fd(fd);
    return r;
}

int mailbox_take(struct mailbox *mailbox, const struct payload_wire *wire, struct parcel *ret)
{
    int fd, r;

    if (wire->form == PAYLOAD_INLINE)
        return parcel_set(ret, wire->data, (size_t)wire->size);
    if (wire->serial != mailbox->blobs_received + 1)
        return -EPROTO;
    r = mailbox_receive(mailbox, wire->serial, &fd);
    if (r < 0 && r != -EMFILE && r != -ENOMEM)
        return r;
    mailbox->blobs_received++;
    if (r < 0)
        return r;
    r = payload_blob_check(fd, wire->size);
    if (r < 0) {
        closer_close(fd);
        return r;
    }
    return keep_blob(mailbox, fd, wire->size, ret);
}

static int mailbox_send_blob(struct mailbox *mailbox, int fd, uint64_t size,
                             struct payload_wire *ret)
{
    int r;

    r = payload_send_fd(mailbox->control, fd, mailbox->blobs_sent + 1);
    if (r == -EAGAIN)
        return mailbox_await_socket(mailbox);
    if (r == -EPIPE || r == -ECONNRESET || r == -ENOTCONN) {
        mailbox_break(mailbox, "closed its control socket");
        return -EPROTO;
    }
    if (r < 0)
        return r;
    mailbox->blobs_sent++;
    *ret = (struct payload_wire){.form = PAYLOAD_BLOB, .size = size, .serial = mailbox->blobs_sent};
    return 0;
}

static int mailbox_send_copy(struct mailbox *mailbox, const struct parcel *parcel,
                             struct payload_wire *ret)
{
    _cleanup_close_ int made = -1;
    int r;

    r = payload_blob_copy(parcel_data(parcel), (size_t)parcel->size, &made);
    return r < 0 ? r : mailbox_send_blob(mailbox, made, parcel->size, ret);
}

int mailbox_give(struct mailbox *mailbox, const struct parcel *parcel, struct payload_wire *ret)
{
    if (parcel->fd >= 0)
        return mailbox_send_blob(mailbox, parcel->fd, parcel->size, ret);
    if (parcel->size > mailbox->channel.mine.header->inline_max)
        return mailbox_send_copy(mailbox, parcel, ret);
    *ret = (struct payload_wire){
        .form = PAYLOAD_INLINE, .data = parcel_data(parcel), .size = parcel->size};
    return 0;
}

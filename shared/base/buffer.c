/* SPDX-License-Identifier: MIT */
#include "shared/base/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define FIRST_ROOM 256u
#define READ_SIZE  ((size_t)64 << 10)
#define DIGITS_MAX 20 /* of 64 bits */

void buffer_deinit(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct buffer)BUFFER_NULL;
}

/* Makes room for at least `size` more bytes behind the last one. Without memory, returns false and
 * sets `failed`. */
static bool reserve(struct buffer *buffer, size_t size)
{
    size_t room = buffer->room > 0 ? buffer->room : FIRST_ROOM;
    char *bytes;

    if (buffer->failed)
        return false;
    if (size <= buffer->room - buffer->size)
        return true;
    while (room - buffer->size < size)
        room *= 2;
    bytes = realloc(buffer->bytes, room);
    buffer->failed = !bytes;
    if (!bytes)
        return false;
    buffer->bytes = bytes;
    buffer->room = room;
    return true;
}

void buffer_extend(struct buffer *buffer, const char *bytes, size_t size)
{
    if (reserve(buffer, size))
        buffer_add(buffer, bytes, size);
}

void buffer_add_number(struct buffer *buffer, int64_t value)
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char digits[DIGITS_MAX + 1], *first = digits + sizeof(digits);

    do {
        *--first = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0)
        *--first = '-';
    buffer_add(buffer, first, (size_t)(digits + sizeof(digits) - first));
}

int buffer_read(struct buffer *buffer, int fd)
{
    ssize_t n;

    do {
        if (!reserve(buffer, READ_SIZE))
            return -ENOMEM;
        n = read(fd, buffer->bytes + buffer->size, buffer->room - buffer->size);
        if (n > 0)
            buffer->size += (size_t)n;
    } while (n > 0 || (n < 0 && errno == EINTR));
    return n < 0 ? -errno : 0;
}

char *buffer_take(struct buffer *buffer, size_t *ret_size)
{
    char *bytes;

    buffer_add_char(buffer, '\0');
    bytes = buffer->failed ? NULL : buffer->bytes;
    if (!bytes)
        free(buffer->bytes);
    else if (ret_size)
        *ret_size = buffer->size - 1;
    *buffer = (struct buffer)BUFFER_NULL;
    return bytes;
}

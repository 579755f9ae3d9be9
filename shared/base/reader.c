/* SPDX-License-Identifier: MIT */
#include "shared/base/reader.h"

#include "shared/base/cleanup.h"
#include <poll.h>
#include <string.h>

#define READ_SIZE ((size_t)64 << 10)

struct reader reader_make(int fd, char separator, bool terminated, size_t max)
{
    return (struct reader){.fd = fd, .separator = separator, .terminated = terminated, .max = max};
}

void reader_deinit(struct reader *reader)
{
    free(reader->buffer);
    *reader = (struct reader){.fd = -1};
}

/* Makes room for READ_SIZE more bytes. */
static int make_room(struct reader *reader)
{
    size_t wanted = 2 * reader->allocated + READ_SIZE;
    char *buffer;

    if (reader->start > 0) {
        memmove(reader->buffer, reader->buffer + reader->start, reader->filled - reader->start);
        reader->filled -= reader->start;
        reader->searched -= reader->start;
        reader->start = 0;
    }
    if (reader->allocated - reader->filled >= READ_SIZE)
        return 0;
    if (reader->filled > reader->max)
        return -EMSGSIZE;
    buffer = realloc(reader->buffer, wanted);
    if (!buffer)
        return -ENOMEM;
    reader->buffer = buffer;
    reader->allocated = wanted;
    return 0;
}

static int read_more(struct reader *reader, usec_t deadline)
{
    struct pollfd poller = {.fd = reader->fd, .events = POLLIN};
    struct timespec left = usec_to_timespec(clock_left(deadline));
    ssize_t n;
    int r = make_room(reader);

    if (r < 0)
        return r;
    r = ppoll(&poller, 1, deadline == USEC_INFINITY ? NULL : &left, NULL);
    if (r < 0)
        return -errno;
    if (r == 0)
        return READER_E_LATER;
    n = read(reader->fd, reader->buffer + reader->filled, reader->allocated - reader->filled);
    if (n < 0)
        return errno == EAGAIN ? READER_E_LATER : -errno;
    reader->end = n == 0;
    reader->filled += (size_t)n;
    return 0;
}

/* Returns the next separator or NULL. */
static const char *find_separator(struct reader *reader)
{
    const char *found = NULL;

    if (reader->filled > reader->searched)
        found = memchr(reader->buffer + reader->searched, reader->separator,
                       reader->filled - reader->searched);
    reader->searched = found ? (size_t)(found - reader->buffer) + 1 : reader->filled;
    return found;
}

int reader_next(struct reader *reader, usec_t deadline, const char **ret, size_t *ret_size)
{
    const char *separator;

    while (!(separator = find_separator(reader))) {
        int r;

        if (reader->end)
            break;
        r = read_more(reader, deadline);
        if (r != 0)
            return r;
    }
    if (!separator && (reader->terminated || reader->start == reader->filled))
        return READER_E_END;
    *ret = reader->buffer + reader->start;
    *ret_size = separator ? (size_t)(separator - *ret) : reader->filled - reader->start;
    reader->start = separator ? reader->searched : reader->filled;
    return 0;
}

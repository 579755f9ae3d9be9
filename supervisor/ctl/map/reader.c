/* SPDX-License-Identifier: MIT */
#include "supervisor/ctl/map/reader.h"

#include "shared/base/cleanup.h"
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#define READ_SIZE ((size_t)64 << 10)

void reader_init(struct reader *reader, int fd, char separator)
{
    struct stat status;
    off_t offset;

    *reader = (struct reader){.fd = fd, .separator = separator};
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return;
    offset = lseek(fd, 0, SEEK_CUR);
    if (offset >= 0 && offset < status.st_size)
        reader->size = (uint64_t)(status.st_size - offset);
}

void reader_deinit(struct reader *reader)
{
    free(reader->buffer);
    *reader = (struct reader){.fd = -1};
}

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
    if (reader->filled > READER_LINE_MAX)
        return -EMSGSIZE;
    buffer = realloc(reader->buffer, wanted);
    if (!buffer)
        return -ENOMEM;
    reader->buffer = buffer;
    reader->allocated = wanted;
    return 0;
}

static int read_more(struct reader *reader, int timeout_ms)
{
    struct pollfd poller = {.fd = reader->fd, .events = POLLIN};
    ssize_t n;
    int r;

    r = make_room(reader);
    if (r < 0)
        return r;
    r = poll(&poller, 1, timeout_ms);
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

/* Where the next separator is, or NULL. */
static const char *find_separator(struct reader *reader)
{
    const char *found = NULL;

    if (reader->filled > reader->searched)
        found = memchr(reader->buffer + reader->searched, reader->separator,
                       reader->filled - reader->searched);
    reader->searched = found ? (size_t)(found - reader->buffer) + 1 : reader->filled;
    return found;
}

int reader_next(struct reader *reader, int timeout_ms, const char **ret, size_t *ret_size)
{
    const char *separator;

    while (!(separator = find_separator(reader))) {
        int r;

        if (reader->end)
            break;
        r = read_more(reader, timeout_ms);
        if (r != 0)
            return r;
    }
    if (!separator && reader->start == reader->filled)
        return READER_E_END;
    *ret = reader->buffer + reader->start;
    *ret_size = separator ? (size_t)(separator - *ret) : reader->filled - reader->start;
    reader->start = separator ? reader->searched : reader->filled;
    return 0;
}

/* SPDX-License-Identifier: MIT */
#include "supervisor/process/journal.h"
#include "shared/base/cleanup.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define FIELDS_MAX  32
#define SEND_BUFFER (8 * 1024 * 1024)

/* One entry; its pieces are borrowed. */
struct entry {
    struct iovec pieces[FIELDS_MAX * 5];
    int n_pieces;
    uint64_t lengths[FIELDS_MAX]; /* little-endian, of values with newlines */
    size_t n_lengths;
};

/* log_sink functions have no userdata. */
static struct journal *log_journal;

bool journal_is_stderr(void)
{
    struct stat st;
    unsigned long long device, inode;
    char rest;
    const char *stream = getenv("JOURNAL_STREAM");
    return stream && sscanf(stream, "%llu:%llu%c", &device, &inode, &rest) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

int journal_init(struct journal *journal, const char *identifier, const char *path)
{
    *journal = (struct journal){.fd = -1, .identifier = identifier};
    if (!path)
        path = JOURNAL_SOCKET;
    if (strlen(path) >= sizeof(journal->address.sun_path))
        return -ENAMETOOLONG;
    journal->address.sun_family = AF_UNIX;
    strcpy(journal->address.sun_path, path);

    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* As large as permitted; entries beyond it are dropped and counted. */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){SEND_BUFFER}, sizeof(int));
    journal->fd = fd;
    return 0;
}

void journal_deinit(struct journal *journal)
{
    if (log_journal == journal) {
        log_set_sink(NULL);
        log_journal = NULL;
    }
    journal->fd = close_fd(journal->fd);
}

static void append(struct entry *entry, const void *data, size_t size)
{
    entry->pieces[entry->n_pieces++] = (struct iovec){.iov_base = (void *)data, .iov_len = size};
}

/*
 * Appends NAME=value, or for a value with a newline: NAME, newline, its length in 64 bits, value.
 */
static void append_field(struct entry *entry, const char *name, const char *value)
{
    if (!value || entry->n_pieces + 5 > (int)ELEMENTS(entry->pieces))
        return;
    size_t size = strlen(value);
    append(entry, name, strlen(name));
    if (memchr(value, '\n', size)) {
        uint64_t *length = &entry->lengths[entry->n_lengths++];
        *length = htole64(size);
        append(entry, "\n", 1);
        append(entry, length, sizeof(*length));
    } else {
        append(entry, "=", 1);
    }
    append(entry, value, size);
    append(entry, "\n", 1);
}

static int send_entry(struct journal *journal, enum log_level level, const char *identifier,
                      struct log_fields fields, const char *text)
{
    struct entry entry = {.n_pieces = 0};
    const char priority[2] = {(char)('0' + (level & 7)), '\0'};
    append_field(&entry, "PRIORITY", priority);
    append_field(&entry, "SYSLOG_IDENTIFIER", identifier ? identifier : journal->identifier);
    append_field(&entry, "MESSAGE", text);
    for (size_t i = 0; i < fields.n_fields; i++)
        append_field(&entry, fields.fields[i].name, fields.fields[i].value);

    /* Names the address each time: journald may bind a new socket after an upgrade. */
    struct msghdr message = {
        .msg_name = &journal->address,
        .msg_namelen = sizeof(journal->address),
        .msg_iov = entry.pieces,
        .msg_iovlen = (size_t)entry.n_pieces,
    };
    return sendmsg(journal->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void report_dropped(struct journal *journal)
{
    char text[96];
    if (journal->n_dropped == 0)
        return;
    (void)snprintf(text, sizeof(text),
                   "%llu log entries were dropped: the journal did not take them",
                   (unsigned long long)journal->n_dropped);
    if (send_entry(journal, LOG_LEVEL_WARNING, NULL, LOG_NO_FIELDS, text) == 0)
        journal->n_dropped = 0;
}

bool journal_send(struct journal *journal, enum log_level level, const char *identifier,
                  struct log_fields fields, const char *message)
{
    int saved = errno;
    report_dropped(journal);
    bool sent = send_entry(journal, level, identifier, fields, message) == 0;
    if (!sent)
        journal->n_dropped++;
    errno = saved;
    return sent;
}

static void journal_sink(enum log_level level, struct log_fields fields, const char *message)
{
    (void)journal_send(log_journal, level, NULL, fields, message);
}

void journal_log_to(struct journal *journal)
{
    log_journal = journal;
    log_set_sink(journal_sink);
}

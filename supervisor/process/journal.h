/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sends entries with fields to systemd's journal, in its native protocol, without blocking.
 *
 * sd_journal_sendv() blocks while journald's socket is full, so a journald that is stopped, slow or
 * out of disk would stop the supervisor and all jobs. Here an entry that the journal does not
 * accept at once is dropped, and the next entry that gets through reports the count. Protocol:
 * https://systemd.io/JOURNAL_NATIVE_PROTOCOL/. All entries are small enough for a datagram: a line
 * of output has at most CAPTURE_LINE_MAX bytes.
 */

#include "shared/base/log.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define JOURNAL_SOCKET "/run/systemd/journal/socket"

struct journal {
    int fd;
    struct sockaddr_un address;
    const char *identifier; /* SYSLOG_IDENTIFIER of the supervisor's entries; borrowed */
    uint64_t n_dropped;     /* not yet reported */
};

/* clang-format off */
#define JOURNAL_NULL {.fd = -1}
/* clang-format on */

/* Returns whether standard error is connected to the journal ($JOURNAL_STREAM). */
bool journal_is_stderr(void);

/* path: NULL = JOURNAL_SOCKET. The socket need not exist yet. Returns 0 or -errno. */
int journal_init(struct journal *journal, const char *identifier, const char *path);

/* Also stops being the log's sink. Harmless on JOURNAL_NULL. */
void journal_deinit(struct journal *journal);

/*
 * Sends an entry without blocking. identifier: NULL = the supervisor's; a worker's lines have their
 * own, with the fields TROUPE_GROUP and TROUPE_WORKER. Fields without a value are left out. Returns
 * true if the entry was sent, false if it was dropped.
 */
bool journal_send(struct journal *journal, enum log_level level, const char *identifier,
                  struct log_fields fields, const char *message);

/* Makes this journal the sink of log_write(). Only one at a time; it must outlive its use. */
void journal_log_to(struct journal *journal);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sends entries to systemd's journal, natively, with fields, and never waits.
 *
 * Why not sd_journal_sendv(): it blocks while journald's socket is full, and so a journald that is
 * stopped, slow or out of disk would stop the supervisor and every job with it. Here an entry that
 * the journal does not take at once is dropped and counted, and the count is reported by the next
 * entry that gets through. The protocol: https://systemd.io/JOURNAL_NATIVE_PROTOCOL/
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
    const char *identifier; /* SYSLOG_IDENTIFIER of the supervisor's own entries; borrowed */
    uint64_t n_dropped;     /* not yet reported */
};

/* clang-format off */
#define JOURNAL_NULL {.fd = -1}
/* clang-format on */

/* Whether standard error is connected to the journal ($JOURNAL_STREAM names it). */
bool journal_is_stderr(void);

/* path: NULL = JOURNAL_SOCKET. 0 or -errno. The socket need not exist yet. */
int journal_init(struct journal *journal, const char *identifier, const char *path);

/* Also takes it back as the log's sink. Harmless on JOURNAL_NULL. */
void journal_deinit(struct journal *journal);

/*
 * One entry. identifier: NULL = the supervisor's own; a worker's lines carry their own, with
 * TROUPE_GROUP and TROUPE_WORKER among the fields. Fields without a value, or with a name that the
 * journal would refuse, are left out. Never blocks; true if the entry was sent, false if it was
 * dropped.
 */
bool journal_send(struct journal *journal, enum log_level level, const char *identifier,
                  struct log_fields fields, const char *message);

/* From now on log_write() goes to this journal; one at a time, and it must outlive its use. */
void journal_log_to(struct journal *journal);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads in the system's journal what workers wrote. Entries of other senders are left out: of those
 * that the supervisor's user has sent, the fields are the supervisor's. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct sd_journal;

struct journal_source {
    const char *target; /* group, cell or worker; NULL = a job */
    const char *job;
    long long supervisor; /* its pid */
};

/* Returns 0, or -errno: there is no journal, or it may not be read. The caller closes `*ret`. */
int journal_open(const struct journal_source *source, struct sd_journal **ret);
void journal_close(struct sd_journal *journal);

/* Goes back so that journal_next_lines() begins with about the last `limit` lines. */
void journal_go_back(struct sd_journal *journal, size_t limit);

/* Adds the lines up to the end of the journal, with the worker in front of each if
 * `names_workers`. Returns 0 or -errno. */
int journal_next_lines(struct sd_journal *journal, bool names_workers, json_t *lines);

/* Waits until there may be more. Returns 0 or -errno. */
int journal_wait(struct sd_journal *journal);

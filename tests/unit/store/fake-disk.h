/* SPDX-License-Identifier: MIT */
#pragma once

/* A VFS of SQLite upon the real files, whose writes and syncs can fail, and which knows what would
 * be left after a power cut: what was synced. After a failed sync, as on Linux, what it should have
 * written is neither on disk nor written by the next one, but still read. */

#include <stdbool.h>

/* For database_open(). */
#define FAKE_DISK "fake-disk"

enum fake_fault {
    FAKE_NO_FAULT,
    FAKE_ENOSPC,       /* a write or a growth */
    FAKE_EIO_ON_WRITE, /* a write or a growth */
    FAKE_EIO_ON_SYNC,
    FAKE_EIO_ON_READ,
};

/* Registers the VFS. */
void fake_disk_init(void);
void fake_disk_deinit(void);

/* Lets the `nth` (from 1) operation of that kind from now on fail, and the `n` - 1 that follow
 * it. */
void fake_disk_fail(enum fake_fault fault, unsigned nth, unsigned n);
/* How many of them have failed since then. */
unsigned fake_disk_n_failed(void);

/* Each write fails with ENOSPC while this file exists; NULL = none. Borrowed. */
void fake_disk_full_while(const char *path);

/* From now on nothing reaches the disk. */
void fake_disk_cut_power(void);
/* Restores the files as they were on disk. All of them are closed. */
void fake_disk_power_on(void);

/* SPDX-License-Identifier: MIT */
#pragma once

/* A file that keeps disk space free for the ends of jobs. It is given up when the disk is full:
 * half of it for the ends, half for what the log has not brought into the database yet. */

#define RESERVE_SIZE (16 << 20)

/* Makes the file, if it is missing or too small. Returns 0 or -errno; -ENOSPC and -EDQUOT leave no
 * file. */
int reserve_make(const char *path);

/* Removes the file, if it is there. */
void reserve_give_up(const char *path);

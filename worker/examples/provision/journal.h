/* SPDX-License-Identifier: MIT */
#pragma once

/* A log of actions, one line each, appended by any number of processes. */

/* Writes a line; does nothing if `path` is NULL. An error is reported on standard error. */
void journal_write(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

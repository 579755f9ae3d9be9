/* SPDX-License-Identifier: MIT */
#pragma once

/* Who did what, one line each, appended by any number of processes. */

/* A NULL path is none. Whoever cannot write says so on standard error and goes on. */
void journal_write(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

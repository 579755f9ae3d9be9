/* SPDX-License-Identifier: MIT */
#pragma once

/* Explains why execve(2) fails with ENOENT for a script that exists: its interpreter is missing. */

#include <stddef.h>

/*
 * If `path` is a script whose first line names an interpreter that does not exist or cannot be
 * executed, writes a clause that names it, cut to `size`, and returns `text`; otherwise returns
 * NULL. Opens the file, which may take time on a network file system.
 */
const char *interpreter_fault(const char *path, char *text, size_t size);

/* Suffices for every clause. */
#define INTERPRETER_TEXT 400

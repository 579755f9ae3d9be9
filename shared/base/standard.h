/* SPDX-License-Identifier: MIT */
#pragma once

/* Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed. Otherwise files opened
 * later would get these numbers, and our messages would be written to them. Reading then returns
 * the end of file, and writing fails. Call first in main(). Returns 0 or -errno of open(2). */
int standard_open(void);

/* Makes a write above the limit on the size of files (RLIMIT_FSIZE) fail with EFBIG instead of
 * ending this process. Programs that it executes still end by SIGXFSZ. */
void standard_survive_file_limit(void);

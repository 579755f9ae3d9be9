/* SPDX-License-Identifier: MIT */
#pragma once

/* Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed. Otherwise files opened
 * later would get these numbers, and our messages would be written to them. Reading then returns
 * the end of file, and writing fails. Call first in main(). Returns 0 or -errno of open(2). */
int standard_open(void);

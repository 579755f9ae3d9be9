/* SPDX-License-Identifier: MIT */
#pragma once

/* Opens those of descriptors 0, 1 and 2 that are missing as /dev/null; else the next files would
 * take their numbers, and get our messages. Reading then finds the end, and writing fails. Call
 * first in main(). Returns 0 or -errno of open(2). */
int standard_open(void);

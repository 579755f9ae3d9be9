/* SPDX-License-Identifier: MIT */
#pragma once

/* Descriptors 0, 1 and 2 for a program that may have been started without them: whatever is opened
 * next would take their numbers, and messages for people would end up in a socket. What is missing
 * becomes /dev/null, opened so that reading 0 finds an end, and writing 1 or 2 fails. First thing
 * in main(). 0 or -errno of open(2). */
int standard_open(void);

/* SPDX-License-Identifier: MIT */
#pragma once

/* Moves private memory that is mostly in use into huge pages. Best effort: does nothing where the
 * kernel or a filter forbids it. Takes milliseconds for each 10 MiB. */
void worker_collapse_heap(void);

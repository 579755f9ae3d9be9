/* SPDX-License-Identifier: MIT */
#pragma once

/* The files of the page, which are part of the program. */

#include <microhttpd.h>

struct page_file;

/* The file that is served under a path, "/" being the page itself; NULL = none. */
const struct page_file *page_find(const char *path);

/* Sends it, or replies that the browser's copy is still valid. */
enum MHD_Result page_answer(struct MHD_Connection *connection, const struct page_file *file);

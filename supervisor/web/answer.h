/* SPDX-License-Identifier: MIT */
#pragma once

/* Answers to browsers, with their common headers. */

#include "supervisor/web/question.h"
#include <microhttpd.h>

/* Bounds the answers that browsers have not read yet. Beyond it, further answers are refused with
 * status 503. */
#define ANSWER_BYTES_MAX ((size_t)32 << 20)

/* Sends a response that is a stream of events, and drops the reference; NULL = out of memory. */
enum MHD_Result answer_stream(struct MHD_Connection *connection, struct MHD_Response *response);

/* Takes ownership of `body`; NULL = out of memory. */
enum MHD_Result answer_json(struct MHD_Connection *connection, unsigned status, json_t *body);

/* Takes ownership of `text`, like answer_json(). `type` is static. */
enum MHD_Result answer_text(struct MHD_Connection *connection, const char *type, char *text,
                            size_t size);

/* Sends {"error": short name, "reason": a sentence}. `allow`: the permitted methods, for 405. */
enum MHD_Result answer_refusal(struct MHD_Connection *connection, unsigned status,
                               const char *reason, const char *allow);

/* Answers with the reason why the supervisor did not reply, or with its error. */
enum MHD_Result answer_failure(struct MHD_Connection *connection, const char *socket, int failure);
enum MHD_Result answer_error(struct MHD_Connection *connection, const struct varlink_reply *reply);

/* ---- the files of the page, which are part of the program ---- */

struct page_file;

/* Returns the file that is served under a path; "/" is the page itself. NULL = none. */
const struct page_file *page_find(const char *path);

/* Sends it, or replies that the browser's copy is still valid. */
enum MHD_Result page_answer(struct MHD_Connection *connection, const struct page_file *file);

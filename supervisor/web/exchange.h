/* SPDX-License-Identifier: MIT */
#pragma once

/* One request of a browser and its answer. */

#include "supervisor/web/feed.h"
#include "supervisor/web/guard.h"
#include "supervisor/web/item-stream.h"
#include "supervisor/web/question.h"

/* The state that requests share, filled in by main(). */
struct site {
    struct guard guard;
    struct questions questions;
    struct feed feed, job_feed;
    struct item_streams items;
};

/* For MHD_start_daemon(); `userdata` is the struct site. */
enum MHD_Result exchange_handle(void *userdata, struct MHD_Connection *connection, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_size, void **context);

/* For MHD_OPTION_NOTIFY_COMPLETED. */
void exchange_completed(void *userdata, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode code);

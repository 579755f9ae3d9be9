/* SPDX-License-Identifier: MIT */
#pragma once

/* The collector to which spans are exported, as the environment variables of OpenTelemetry name it:
 * https://opentelemetry.io/docs/specs/otel/protocol/exporter/ */

#include "shared/base/clock.h"
#include <curl/curl.h>

struct collector {
    char *url;                  /* owned; may contain a password: never logged */
    char *name;                 /* owned; SCHEME://HOST:PORT, for the log */
    struct curl_slist *headers; /* owned; may contain secrets: never logged */
    usec_t timeout;             /* of a request */
};

/* Reads the environment. Prints what is wrong with it, without values. Returns 0, -EINVAL or
 * -ENOMEM. Release it with collector_deinit(), also after a failure. */
int collector_init(struct collector *collector);
void collector_deinit(struct collector *collector);

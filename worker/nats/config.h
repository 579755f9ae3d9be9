/* SPDX-License-Identifier: MIT */
#pragma once

/* The configuration of troupe-nats: a file of KEY=VALUE lines below [Nats], then the environment.
 * troupe-nats(8) lists the keys. */

#include "shared/base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_FILE          "/etc/troupe/nats.conf"
#define CONFIG_IN_FLIGHT_MAX 65536u

/* Which ended jobs are published. Dead letters always are. */
enum config_results {
    CONFIG_RESULTS_ALL,
    CONFIG_RESULTS_ERRORS, /* of those that have not succeeded */
    CONFIG_RESULTS_NONE,
};

struct config {
    char *url;         /* of one server or more, with commas; may hold a password: never log it */
    char *credentials; /* these four are files; NULL = none */
    char *ca_file, *certificate_file, *key_file;
    char *nkey, *nkey_file; /* the public key, and the file of its seed */
    char *stream;
    char *consumer;    /* NULL = named like the group */
    char *filter;      /* the subjects of its messages, for `setup`; NULL = all of the group */
    char *machine;     /* what others call this machine */
    const char *group; /* borrowed */
    uint64_t in_flight;
    uint64_t results;  /* enum config_results */
    uint64_t replicas; /* for `setup` */
    usec_t ack_wait;   /* the same; and how long a server may be silent */
    usec_t state;      /* between two reports about this machine */
};

/* clang-format off */
#define CONFIG_NULL {0}
/* clang-format on */

/*
 * Sets the defaults, reads the file and the environment, and checks the result. `path` NULL =
 * CONFIG_FILE if it exists, "" = no file. Returns 0, or -errno after all problems have been logged.
 * The caller calls config_deinit() in either case.
 */
int config_load(struct config *config, const char *path, const char *group);
void config_deinit(struct config *config);

/* The consumer from which the group takes its messages. */
static inline const char *config_consumer(const struct config *config)
{
    return config->consumer ? config->consumer : config->group;
}

#define CONFIG_URLS_MAX 16u

/* Splits a text in place. Returns how many URLs there are, of which the first CONFIG_URLS_MAX are
 * stored. */
size_t config_split_urls(char *text, const char *urls[static CONFIG_URLS_MAX]);

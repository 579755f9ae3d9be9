/* SPDX-License-Identifier: MIT */
#pragma once

/* A worker's end of its data source: a process that is started when needed, and again after it
 * ends. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct load {
    pid_t pid; /* 0 = there is none */
    int fd;    /* both ways */
    uint64_t timeout_msec;
    char reason[200]; /* why the last one failed */
};

/* clang-format off */
#define LOAD_NULL {.fd = -1}
/* clang-format on */

/*
 * Loads the data of an item into memory that the caller frees. 0; or -errno with a reason: the
 * source reported an error (-EIO), is gone (-EPIPE), or has not answered in time (-ETIMEDOUT);
 * after the last two the next call starts another source.
 */
int load_item(struct load *load, const char *item, char **ret_data, size_t *ret_size);

/* Ends the source. */
void load_end(struct load *load);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An example: a batch of any number of items, each of which needs a large piece of data during its
 * work, in bounded memory.
 *
 *     orchestrate start GROUP N [OPTION…]   enqueues N items and reports their outcomes
 *     orchestrate work [OPTION…]            the worker that trouped starts
 *     orchestrate source                    the data source of a worker
 *
 * An item is a job of a few bytes; its worker loads the data, and frees it before the next item
 * begins. So the memory is bounded by Size= pieces of data and QueueMax= small jobs, for any N.
 * `troupectl status GROUP`, or GetStatus of the socket, shows how many are running and queued: the
 * supervisor answers at any time, whatever senders and workers do.
 *
 * The payload of an item is "NAME SIZE [fail|crash|hang]": its name, the size of its data in bytes,
 * and a failure for its source to simulate.
 */

#include <stddef.h>
#include <stdint.h>

#define ORCHESTRATE_ITEM_MAX 256

/* The three commands; argv[0] is their name. They return the exit status. */
int orchestrate_start(int argc, char *argv[]);
int orchestrate_work(int argc, char *argv[]);
int orchestrate_source(void);

/* Parses a decimal number, and accepts nothing else. Returns 0 or -EINVAL. */
int orchestrate_number(const char *text, uint64_t *ret);

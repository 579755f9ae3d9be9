/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An example: a batch of any number of items, each of which needs a large piece of data while it is
 * worked on, in bounded memory.
 *
 *     orchestrate start GROUP N [OPTION…]   enqueues N items and tells what became of them
 *     orchestrate work [OPTION…]            the worker that trouped starts
 *     orchestrate source                    where a worker has its data from
 *
 * An item is a job of a few bytes; its data is loaded by the worker that has it, and gone before
 * the next item is begun. So the memory is that of Size= pieces of data and of QueueMax= small
 * jobs, whatever N is. How many are running and queued is `troupectl status GROUP`, or GetStatus of
 * the socket: the supervisor answers it at any time, whatever senders and workers do.
 *
 * The payload of an item is "NAME SIZE [fail|crash|hang]": what it is called, how many bytes of
 * data it needs, and how its source is to misbehave, if it is.
 */

#include <stddef.h>
#include <stdint.h>

#define ORCHESTRATE_ITEM_MAX 256

/* The three commands, argv[0] being their name; they return the exit status. */
int orchestrate_start(int argc, char *argv[]);
int orchestrate_work(int argc, char *argv[]);
int orchestrate_source(void);

/* A decimal number, and nothing else. 0 or -EINVAL. */
int orchestrate_number(const char *text, uint64_t *ret);

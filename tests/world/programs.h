/* SPDX-License-Identifier: MIT */
#pragma once

/* The programs of the world: workers, and clients of the supervisor. */

#include <stddef.h>

struct spawn_options;
struct spawn_fd;
struct program_start;

/* Copies what a program is started with; the descriptors stay the caller's until
 * program_prepare(). */
struct program_start *program_start_new(const struct spawn_options *options);
const char *program_name(const struct program_start *start);
/* In the new process: keeps the descriptors of the options, with their numbers. */
void program_prepare(void *start);
void program_main(void *start);

/* The payload of slots. */
#define PROGRAM_SLOT_DATA "a slot"

/* Closes all descriptors but these, the standard ones and those of the world. */
void program_keep_fds(const struct spawn_fd *fds, size_t n);

/* Starts a client that submits `n_jobs` jobs to a group, and notes their ends in the model. */
void program_start_client(const char *socket_path, const char *group, unsigned n_jobs);
/* How many clients are at work. */
extern unsigned program_n_clients;

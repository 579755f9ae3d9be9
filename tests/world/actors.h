/* SPDX-License-Identifier: MIT */
#pragma once

/* Messages of the world: workers and clients as actors. */

struct troupe_worker;

/* Has a worker listen to talkers. */
void actors_listen(struct troupe_worker *worker);
/* Starts a client that sends `n` messages of all kinds to a worker. It counts as one of
 * program_n_clients. */
void actors_start_talker(const char *socket_path, const char *recipient, unsigned n);

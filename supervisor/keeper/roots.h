/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The roots that are prepared (sandbox-root.h). Each holds what is mounted in it, and sees no mount
 * of the machine that comes later unless that is propagated; so all are dropped when the machine's
 * mounts change. Some changes go unnoticed: a directory with a mount in it is renamed, mounts
 * become shared, a file server forgets a file. So each root is also dropped ROOTS_KEPT_USEC after
 * it was prepared, and with it files that were removed.
 */

#include "shared/base/clock.h"
#include "supervisor/keeper/sandbox-files.h"
#include "supervisor/keeper/sandbox-root.h"
#include <poll.h>
#include <stdint.h>

#define ROOTS_MAX       32
#define ROOTS_KEPT_USEC (60 * USEC_PER_SEC)

struct prepared_root {
    uint64_t key;
    usec_t until;
    int fds[_SANDBOX_ROOT_N_FDS]; /* as of struct sandbox_root; -1 = unused */
    size_t size;
    uint8_t seen[SANDBOX_ROOT_SEEN_MAX];
};

struct roots {
    int offers[2]; /* sockets: new processes write to the second; -1 = prepare none */
    int mounts;    /* tells when the mounts change; -1 = prepare none */
    uint64_t generation;
    size_t next; /* to be replaced when all are in use */
    usec_t due;  /* when to call roots_drop_old(); USEC_INFINITY = never */
    struct prepared_root roots[ROOTS_MAX];
};

/* Prepares no roots if that is not possible or not permitted. */
void roots_init(struct roots *roots);

/* Sets `*ret` to the root for these files. The caller closes `ret->fds`. */
void roots_find(struct roots *roots, const struct sandbox_files *files, struct sandbox_root *ret);

/* roots_wait_mounts() returns a descriptor that has an event once when the mounts change; call
 * roots_drop_all() then. Without a root, there is no event. */
struct pollfd roots_wait_mounts(const struct roots *roots);
void roots_drop_all(struct roots *roots);

void roots_drop_old(struct roots *roots, usec_t now);

/* roots_wait_offers() returns a descriptor that has an event when a root is offered; call
 * roots_take_offers() then. */
struct pollfd roots_wait_offers(const struct roots *roots);
void roots_take_offers(struct roots *roots);

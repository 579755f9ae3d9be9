/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The template of a slot (Template=slot): a process in the slot's cgroup and sandbox that forks the
 * slot's workers (shared/protocol/template-wire.h). It is started once a worker of the slot has
 * come up, and ends with the slot's plan to have one. Until it is ready, workers start by exec.
 *
 *     off ── warming ── ready ── backoff ── warming …
 *                │         └──── ending ──┘
 *                └─ refused ── unsafe          stopping ── off, from all of them
 *
 * It never has a job, and the next supervisor starts another one.
 */

#include "supervisor/loop/timer.h"
#include "supervisor/process/process.h"
#include <stdbool.h>
#include <stdint.h>

struct slot;

enum template_state {
    TEMPLATE_STATE_OFF,
    TEMPLATE_STATE_WARMING,
    TEMPLATE_STATE_READY,
    TEMPLATE_STATE_REFUSED,  /* cannot be forked; is being killed */
    TEMPLATE_STATE_UNSAFE,   /* could not be forked, and has ended; until it is stopped */
    TEMPLATE_STATE_ENDING,   /* is being killed, as it does not answer */
    TEMPLATE_STATE_STOPPING, /* is being killed, as it is not wanted */
    TEMPLATE_STATE_BACKOFF,  /* has ended; a restart is scheduled */
    _TEMPLATE_N_STATES,
};

#define TEMPLATE_TEXT_MAX 256

struct slot_template {
    struct slot *slot;
    struct process process;
    struct capture_memory output;
    int fd; /* of its socket; -1 = none */
    struct loop_watch watch;
    struct timer timer; /* warming: gives it up; ready: renews it; backoff: starts it again */
    enum template_state state;
    uint32_t digest;     /* process_digest of the configuration that it was started with */
    unsigned n_failures; /* since it last forked a worker */
    bool told;           /* why it ends is in the log */
    usec_t since_at;     /* realtime, of the state */
    char reason[TEMPLATE_TEXT_MAX]; /* why it does not fork: escaped; contents */
};

/* Starts or stops the template as the slot needs one. Called after each event of the slot. Best
 * effort: without memory, workers start by exec. */
void slot_template_review(struct slot *slot);
/* Has the template load everything again, since the program may have changed. */
void slot_template_renew(struct slot *slot);
/* Returns the socket of a template that can fork a worker now, or 0. */
int slot_template_socket(const struct slot *slot);
/* It has forked the worker: 0, or -errno. */
void slot_template_forked(struct slot *slot, int error);
/* Whether it has no process, so that nothing is left in the cgroup of the slot. */
bool slot_template_is_gone(const struct slot *slot);
/* Kills and frees the template. Returns NULL; harmless without one. */
struct slot_template *slot_template_free(struct slot_template *template);

/* For status; static. */
const char *template_state_to_string(enum template_state state);

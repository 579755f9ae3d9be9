/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What goes beyond this machine is done by troupe-nats(8), a program of its own beside this one:
 * troupectl needs no library for NATS.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct invocation;

#define NATS_ARGUMENTS_MAX 16

/* A command line of troupe-nats; texts are borrowed. */
struct nats_command {
    const char *arguments[NATS_ARGUMENTS_MAX + 2];
    size_t n_arguments;
    const void *input; /* for its standard input */
    size_t input_size;
};

/* Begins with the program and its verb. */
struct nats_command nats_command_make(const char *verb);

/* Appends `text`; nothing if it is NULL. */
void nats_command_add(struct nats_command *command, const char *text);

/* Whether the command line names other machines: --cluster or --nats. */
bool nats_is_wanted(const struct invocation *invocation);

/*
 * Runs the command with the server of --nats, and reads the document that it prints. The caller
 * owns `*ret`. The first SIGINT ends it, if interrupt_catch() was called: EXIT_INTERRUPTED. Both
 * print errors; returns an exit status.
 */
int nats_run(const struct invocation *invocation, const struct nats_command *command, json_t **ret);

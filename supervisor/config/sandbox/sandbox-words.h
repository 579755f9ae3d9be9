/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The words of the lists in [Sandbox]. Each line of a list that begins with "~" takes away what
 * follows: such words are kept with a "~" of their own, and a line that is "~" alone as that. A
 * list that begins with "~" takes away from all there is, another adds to nothing.
 */

#include "supervisor/config/config-group.h"
#include <stdbool.h>
#include <stdint.h>

#define SANDBOX_NAMESPACES 7

/* The number of what a word names, below 64, or -1. */
int sandbox_capability(const char *word);
int sandbox_family(const char *word);
int sandbox_namespace(const char *word);

/* The flag of namespace `number`, for clone(2). */
unsigned long sandbox_namespace_flag(int number);

/* Whether the word names system calls: a group of them (@file-system), or one that this machine's
 * libseccomp knows; with "~", it may have ":" and an error behind it. */
bool sandbox_is_syscall(const char *word);

/* "kill" = 0; the name or number of an error. Returns -1 for anything else. */
int sandbox_error(const char *word);

/* Returns the set that a list describes: bit N = number N of `find`. "no" is all, "yes" and "none"
 * are nothing. */
uint64_t sandbox_set(const struct config_strings *list, int (*find)(const char *));

/* Skips the "~" of a word. */
const char *sandbox_word(const char *word);

/* The groups of system calls that SystemCallFilter= knows: those of systemd. */

/* The names of a group ("@aio"), separated by spaces, of system calls and of other groups; NULL if
 * there is no such group. Not every machine has each of these calls. */
const char *syscall_group_find(const char *name);

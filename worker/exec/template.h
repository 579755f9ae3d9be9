/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The command line of a job, made from the one that stands in the configuration: in each argument
 * after the first
 *
 *   {}         is the payload (which is then not on standard input)
 *   {id}       the job's id
 *   {key}      its routing key
 *   {attempt}  1, 2 …
 *
 * and any other brace is a brace. What is filled in is never interpreted: there is no shell in
 * between.
 */

#include <stdbool.h>
#include <stddef.h>

/* What is filled in. Payload and key may hold anything; the others are text. */
struct template_values {
    const void *payload;
    size_t payload_size;
    const char *id;
    const void *key;
    size_t key_size;
    unsigned attempt;
};

/* Whether {} occurs: the payload travels as an argument. */
bool template_takes_payload(char *const *argv);

/*
 * A vector as execve(2) wants it; template_free() ends it. -EINVAL when a payload or key with a NUL
 * byte in it would have to become an argument, -E2BIG when one argument becomes longer than the
 * kernel allows, -ENOMEM.
 */
int template_expand(char *const *argv, const struct template_values *values, char ***ret);
void template_free(char **argv);

/*
 * Finds a program as execvp(3) would: as it stands if it has a slash, else in $PATH. 0 and an
 * allocated path; -ENOENT, -EACCES (found, but none that may be executed), -ENOMEM.
 */
int template_resolve(const char *program, char **ret);

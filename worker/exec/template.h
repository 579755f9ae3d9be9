/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Makes a job's command line from the configured one. In each argument after the first it replaces
 *
 *   {}         by the payload (which is then not the standard input)
 *   {id}       by the job's id
 *   {key}      by its routing key
 *   {attempt}  by 1, 2 …
 *
 * and no other brace. No shell interprets the values.
 */

#include <stdbool.h>
#include <stddef.h>

/* Payload and key may hold any bytes. */
struct template_values {
    const void *payload;
    size_t payload_size;
    const char *id;
    const void *key;
    size_t key_size;
    const char *parents; /* ids, separated by commas */
    size_t parents_size;
    const char *traceparent; /* NULL = none */
    unsigned attempt;
};

/* Returns whether {} occurs: the payload becomes an argument. */
bool template_takes_payload(char *const *argv);

/*
 * Returns a vector for execve(2), which the caller frees with template_free(). -EINVAL if a payload
 * or key with a NUL byte would become an argument, -E2BIG if an argument exceeds the kernel's
 * limit, -ENOMEM.
 */
int template_expand(char *const *argv, const struct template_values *values, char ***ret);
void template_free(char **argv);

/* Finds a program like execvp(3): the path itself if it has a slash, else in $PATH. Returns 0 and
 * an allocated path, -ENOENT, -EACCES (found, but not executable) or -ENOMEM. */
int template_find_program(const char *program, char **ret);

/* Returns whether this worker has a private root, which lacks most of the machine's files
 * (PrivateRoot=yes, Profile=strict). */
bool template_has_private_root(void);

/* Returns whether a payload is an absolute path that the private root lacks, and that is not in a
 * directory that the worker may see. The file may exist outside, or not. */
bool template_is_hidden(const void *payload, size_t size);

/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Structs that cross the library's boundary and may grow: each begins with its size, so that
 * programs built for older and newer layouts work. The counterpart of the kernel's
 * copy_struct_from_user().
 */

#include <stddef.h>

/*
 * Makes `*given` point to a struct of the current layout, `size` bytes, of which the first
 * `size_min` have been there from the start. `room` holds the defaults; it is used where `*given`
 * is NULL or of another size. -EINVAL: too small; -E2BIG: a field that this library does not know
 * is set.
 */
int sized_take(const void **given, void *room, size_t size, size_t size_min);

/* For structs that the library fills in: whether `given` can be. 0, -EINVAL, -E2BIG. */
int sized_check(const void *given, size_t size_min);

/* Fills in a checked struct, as far as both know its fields; zeroes the rest. */
void sized_give(void *given, const void *from, size_t size);

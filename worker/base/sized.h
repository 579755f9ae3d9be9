/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Structs of the public interface that may grow. Each begins with its size, so that programs built
 * for older and newer layouts work, as with the kernel's copy_struct_from_user().
 */

#include <stddef.h>

/*
 * Makes `*given` point to a struct of the current layout, of `size` bytes; the first layout had
 * `size_min`. If `*given` is NULL or of another size, uses `room`, which holds the defaults.
 * Returns 0, -EINVAL if it is too small, or -E2BIG if an unknown field is set.
 */
int sized_take(const void **given, void *room, size_t size, size_t size_min);

/* Checks a struct that the library will fill in. Returns 0, -EINVAL or -E2BIG. */
int sized_check(const void *given, size_t size_min);

/* Fills in the fields of a checked struct that both sides know, and zeroes the rest. */
void sized_give(void *given, const void *from, size_t size);

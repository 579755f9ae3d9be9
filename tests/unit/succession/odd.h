/* SPDX-License-Identifier: MIT */
#pragma once

/* Shows that every field of a record gets through a medium: sets each to a value of its own that no
 * code would choose, and compares. */

#include "supervisor/succession/record.h"

/* Fills in the fields of `media`; all texts are static. `seed` makes other values. */
void odd_fill(const struct record *record, unsigned media, void *row, unsigned seed);

/* Fails the test, naming the field, unless these fields are equal in both. */
void odd_compare(const struct record *record, unsigned media, const void *expected,
                 const void *found);

/* Puts an odd row through the file of an upgrade, into a struct that is filled with other values,
 * and compares. `row` and `found` have the record's size. */
void odd_check_upgrade(const struct record *record, void *row, void *found);

/* SPDX-License-Identifier: MIT */
#pragma once

#include "supervisor/message/dead-letter/dead-letter.h"

/* The items of a test's list. */
#define MANY 3000

/* Adds `n` dead letters without bounds. */
void add_letters(enum dead_letter_reason reason, int n);

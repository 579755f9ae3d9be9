/* SPDX-License-Identifier: MIT */
#include "tests/unit/control/letters.h"

#include "tests/unit/control/calls.h"

static const char text[] = "Long enough that a page of them takes several turns: "
                           "..............................................................."
                           "...............................................................";

void add_letters(enum dead_letter_reason reason, int n)
{
    fake_parts.messages.dead_letters.max = UINT64_MAX;
    fake_parts.messages.dead_letters.memory_max = UINT64_MAX;
    for (int i = 0; i < n; i++)
        ck_assert_uint_ne(dead_letter_add(&fake_parts.messages.dead_letters,
                                          &(struct dead_letter){.reason = reason, .text = text},
                                          NULL),
                          0);
}

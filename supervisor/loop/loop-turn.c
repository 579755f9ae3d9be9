/* SPDX-License-Identifier: MIT */
#include "supervisor/loop/loop-private.h"

void loop_note_turn(struct loop *loop, usec_t end)
{
    const usec_t took = usec_sub(end, loop->now);

    if (end - loop->measured_since >= LOOP_MEASURE_PERIOD) {
        /* Of a turn as long as a period, everything before it is past. */
        loop->longest_recent[1] =
            end - loop->measured_since < 2 * LOOP_MEASURE_PERIOD ? loop->longest_recent[0] : 0;
        loop->longest_recent[0] = 0;
        loop->measured_since = end;
    }
    if (took > loop->longest_recent[0])
        loop->longest_recent[0] = took;
    if (took > loop->longest_turn)
        loop->longest_turn = took;
}

struct loop_turns loop_turns(const struct loop *loop)
{
    const usec_t *recent = loop->longest_recent;

    return (struct loop_turns){.longest = loop->longest_turn,
                               .recent = recent[0] > recent[1] ? recent[0] : recent[1]};
}

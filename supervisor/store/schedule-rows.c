/* SPDX-License-Identifier: MIT */
#include "supervisor/store/schedule-rows.h"

#include "supervisor/store/row-values.h"

/* Later times have years of more than four digits: damage. */
#define SCHEDULE_TIME_MAX UINT64_C(253402300799)

#define ROW schedule_row
#define SCHEDULE(F)                                                                                \
    F(ALL, reached, BELOW(reached, SCHEDULE_TIME_MAX))                                             \
    F(ALL, seen, BELOW(seen, SCHEDULE_TIME_MAX))                                                   \
    F(ALL, waiting, BELOW(waiting, SCHEDULE_TIME_MAX), .optional = true)                           \
    F(ALL, firing, BELOW(firing, SCHEDULE_TIME_MAX), .optional = true)                             \
    F(ALL, paused_at, BELOW(paused_at, SCHEDULE_TIME_MAX), .optional = true)                       \
    F(ALL, resumed_at, BELOW(resumed_at, SCHEDULE_TIME_MAX), .optional = true)                     \
    F(ALL, ended_at, BELOW(ended_at, SCHEDULE_TIME_MAX), .optional = true)                         \
    F(ALL, failures, NUMBER(failures))                                                             \
    F(ALL, pause, BELOW(pause, 2))                                                                 \
    F(KEPT, counts, ARRAY(counts))                                                                 \
    F(KEPT, last, ARRAY(last))                                                                     \
    F(KEPT, skips, ARRAY(skips))

const struct record SCHEDULE_ROW_RECORD = RECORD("schedule-row", SCHEDULE);

/* The arrays are one column: they follow each other. */
const struct setting_rows SCHEDULE_ROWS = {
    .what = "what schedules have decided",
    .put = "INSERT OR REPLACE INTO schedule (" SCHEDULE(
        ROW_COLUMN) "slots, name) VALUES (" SCHEDULE(ROW_PARAMETER) "?, ?)",
    .remove = "DELETE FROM schedule WHERE name = ?",
    .get = "SELECT " SCHEDULE(ROW_COLUMN) "slots, name FROM schedule",
    .record = &SCHEDULE_ROW_RECORD,
    .size = sizeof(struct schedule_row),
    .bytes = offsetof(struct schedule_row, counts),
};

/* SPDX-License-Identifier: MIT */
#include "supervisor/event/histogram.h"

#include "supervisor/succession/record.h"

#define ROW histogram
#define HISTOGRAM_FIELDS(F)                                                                        \
    F(UPGRADE, counts, ARRAY(counts))                                                              \
    F(UPGRADE, sum, NUMBER(sum))
static const struct field FIELDS[] = {HISTOGRAM_FIELDS(FIELD)};
const struct record HISTOGRAM_RECORD = RECORD("histogram", FIELDS);

/* SPDX-License-Identifier: MIT */
#include "supervisor/event/histogram.h"

#include "supervisor/succession/saved-row.h"

/* The sum, then pairs of a bucket and its count. */
void histogram_put(struct saved_writer *row, const struct histogram *histogram)
{
    const size_t fields = saved_begin(row);

    saved_put_number(row, histogram->sum);
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        if (histogram->counts[i] == 0)
            continue;
        saved_put_number(row, i);
        saved_put_number(row, histogram->counts[i]);
    }
    saved_end(row, fields);
}

void histogram_get(struct saved_reader *row, struct histogram *histogram)
{
    struct saved_reader fields = saved_get_fields(row);

    histogram->sum += saved_get_number(&fields);
    while (saved_has_more(&fields)) {
        const uint64_t i = saved_get_below(&fields, HISTOGRAM_BOUNDS);

        histogram->counts[i] += saved_get_number(&fields);
    }
}

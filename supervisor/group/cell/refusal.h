/* SPDX-License-Identifier: MIT */
#pragma once

/* Why a job is refused, in the words of each way by which it may come: one table. */

/* All static. */
struct refusal {
    int error;           /* an errno, positive: for the rings */
    const char *varlink; /* name of an error of io.troupe.Jobs */
    const char *text;    /* a sentence */
};

/* What group_submit() returned: NULL for -errno, which has no row. */
const struct refusal *refusal_of(int result);

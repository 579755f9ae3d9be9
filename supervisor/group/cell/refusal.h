/* SPDX-License-Identifier: MIT */
#pragma once

/* Why a job is refused: one table for the rings, the socket and messages. */

/* All static. */
struct refusal {
    int error;           /* an errno, positive: for the rings */
    const char *varlink; /* name of an error of io.troupe.Jobs */
    const char *text;    /* a sentence */
};

/* Returns the row of a CELL_E_*; NULL for -errno. */
const struct refusal *refusal_of(int result);
